//! The language table: one row a language, in the order of injection.
//!
//! A language is its file and its row. Nothing outside the table asks which
//! language it has before it.

mod apache_httpd;
mod dotnet;
mod go;
mod java;
mod nginx;
mod nodejs;
mod python;
pub mod scripts;
mod sdk;

use super::job::Job;
use otel_webhook_api as api;
use otel_webhook_api::{InstrumentationSpec, defaults::LanguageDefaults};

/// One row of the table.
pub struct Language {
    /// Its name, as on the command line, in logs and metrics.
    pub name: &'static str,
    /// The annotation that asks for it, after the prefix.
    pub inject: &'static str,
    /// The annotation that lists its containers, after the prefix.
    pub containers: &'static str,
    /// What holds where an Instrumentation does not say; none for a language without an image.
    pub defaults: Option<&'static LanguageDefaults>,
    /// Whether the operator's default installation has it on.
    pub enabled_by_default: bool,
    /// Whether the agent exports by the variables of its target.
    pub exports_from_target: bool,
    /// Whether init containers can be targets.
    pub in_init_containers: bool,
    /// The containers that mark a pod as injected.
    pub marks: &'static [Mark],
    /// The language's part of an Instrumentation.
    pub settings: for<'s> fn(&'s InstrumentationSpec) -> api::Settings<'s>,
    /// Puts it into a pod.
    pub inject_into: for<'j, 'p> fn(&mut Job<'j, 'p>),
}

/// A container that the operator or the product adds, and nobody else.
#[derive(Clone, Copy, Debug)]
pub enum Mark {
    /// An init container.
    Init(&'static str),
    /// An init container whose name goes on with a number.
    InitWithNumber(&'static str),
    /// A regular container.
    Regular(&'static str),
}

/// The table.
pub static LANGUAGES: [&Language; 8] = [
    &java::ROW,
    &nodejs::ROW,
    &python::ROW,
    &dotnet::ROW,
    &go::ROW,
    &apache_httpd::ROW,
    &nginx::ROW,
    &sdk::ROW,
];

impl Mark {
    /// Whether a container of the pod is this one.
    pub fn is(self, init: bool, name: &str) -> bool {
        match self {
            Self::Init(mark) => init && name == mark,
            Self::InitWithNumber(mark) => init && name.strip_prefix(mark).is_some_and(is_number),
            Self::Regular(mark) => !init && name == mark,
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl std::fmt::Debug for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Language {
    /// Its position in the table.
    pub fn index(&self) -> usize {
        LANGUAGES.iter().position(|row| row.name == self.name).expect("every row is in the table")
    }

    /// The row of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        LANGUAGES.into_iter().find(|row| row.name == name)
    }
}

/// A choice of languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanguageSet(u32);

impl LanguageSet {
    /// Every language there is.
    pub fn all() -> Self {
        LANGUAGES.iter().fold(Self(0), |set, language| set.with(language))
    }

    /// The same set with one language more.
    #[must_use]
    pub fn with(self, language: &Language) -> Self {
        Self(self.0 | 1 << language.index())
    }

    /// Whether a language is in the set.
    pub fn has(self, language: &Language) -> bool {
        self.0 & (1 << language.index()) != 0
    }

    /// Reads a list of names parted by commas, or `all`.
    ///
    /// # Errors
    /// A sentence that names what is no language, and those there are.
    pub fn parse(list: &str) -> Result<Self, String> {
        if list == "all" {
            return Ok(Self::all());
        }
        let mut names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.try_fold(Self(0), |set, name| {
            let unknown = || {
                let valid: Vec<_> = LANGUAGES.iter().map(|language| language.name).collect();
                format!("\"{name}\" is not a language; valid: all, {}", valid.join(", "))
            };
            Language::named(name).map(|language| set.with(language)).ok_or_else(unknown)
        })
    }

    /// The names, parted by commas.
    pub fn names(self) -> String {
        let rows = LANGUAGES.iter().filter(|language| self.has(language));
        rows.map(|language| language.name).collect::<Vec<_>>().join(",")
    }
}

impl std::fmt::Display for LanguageSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.names())
    }
}

impl Default for LanguageSet {
    /// The languages that the operator's default installation has on.
    fn default() -> Self {
        let rows = LANGUAGES.iter().filter(|language| language.enabled_by_default);
        rows.fold(Self(0), |set, language| set.with(language))
    }
}
