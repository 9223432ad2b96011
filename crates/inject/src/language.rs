//! The language table: one row of data for each language, in the order of injection.
//!
//! Nothing outside the table and the code of the agents ([`crate::agents`]) checks
//! which language it handles: each difference is a field of the row.

mod row;
mod rows;

use std::fmt;

pub use row::{ImageVolume, Language, LanguageId, Mark, Names, Shape};
pub use rows::{
    AGENT, APACHE_ATTACH, APACHE_HTTPD, DOTNET, DOTNET_AGENT, GENERIC_AGENT, GO, GO_SIDECAR, JAVA,
    JAVA_AGENT, JAVA_EXTENSION, NGINX, NGINX_ATTACH, NODEJS, NODEJS_AGENT, PYTHON, PYTHON_AGENT, SDK,
    WEB_SERVER_CLONE,
};

/// The annotation with the containers of all languages, without the prefix.
pub const CONTAINERS: &str = "container-names";

/// The table.
pub static LANGUAGES: [&Language; 9] =
    [&JAVA, &NODEJS, &PYTHON, &DOTNET, &GO, &APACHE_HTTPD, &NGINX, &SDK, &AGENT];

/// The row of a name.
pub fn named(name: &str) -> Option<&'static Language> {
    LANGUAGES.into_iter().find(|row| row.name == name)
}

/// A set of languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanguageSet(u32);

impl LanguageSet {
    /// No language.
    pub const NONE: Self = Self(0);

    /// All languages.
    pub fn all() -> Self {
        LANGUAGES.iter().fold(Self(0), |set, language| set.with(language))
    }

    /// The same set with one more language.
    #[must_use]
    pub fn with(self, language: &Language) -> Self {
        Self(self.0 | 1 << language.index())
    }

    /// Whether a language is in the set.
    pub fn has(self, language: &Language) -> bool {
        self.0 & (1 << language.index()) != 0
    }

    /// Parses a comma-separated list of names, or `all`.
    ///
    /// # Errors
    /// A message that names the unknown language, and the valid ones.
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
            named(name).map(|language| set.with(language)).ok_or_else(unknown)
        })
    }

    /// The names, comma-separated.
    pub fn names(self) -> String {
        let rows = LANGUAGES.iter().filter(|language| self.has(language));
        rows.map(|language| language.name).collect::<Vec<_>>().join(",")
    }
}

impl fmt::Display for LanguageSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names())
    }
}

impl Default for LanguageSet {
    /// The languages that the operator's default installation enables, and the agents of Instrumentations.
    fn default() -> Self {
        let rows = LANGUAGES.iter().filter(|language| language.enabled_by_default);
        rows.fold(Self(0), |set, language| set.with(language))
    }
}

/// The keys of all annotations that pods and namespaces may have, without the prefix.
pub fn keys() -> impl Iterator<Item = &'static str> {
    let of = |language: &'static Language| {
        [language.inject, language.containers].into_iter().chain(language.annotations.iter().copied())
    };
    LANGUAGES.into_iter().flat_map(of).chain([CONTAINERS])
}

/// Whether a label is read as an annotation, by its key without the prefix, and by its value. Only those that opt in
/// are: the values of the others are lists.
pub fn is_read_as_label(key: &str, value: &str) -> bool {
    !value.is_empty() && LANGUAGES.iter().any(|language| language.inject == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instrumentation_can_opt_in_to_every_language() {
        let named = LANGUAGES.iter().filter(|row| !row.names_agents()).map(|row| row.name);
        assert!(named.eq(otel_webhook_api::crd::LANGUAGES));
        for row in LANGUAGES {
            assert_eq!(row.inject.strip_prefix("inject-"), Some(row.name));
        }
    }

    #[test]
    fn labels_are_read_only_if_they_opt_in() {
        assert!(is_read_as_label("inject-apache-httpd", "true"));
        for (key, value) in
            [("inject-java", ""), ("container-names", "app"), ("inject-nginx-container-names", "app")]
        {
            assert!(!is_read_as_label(key, value), "{key}");
        }
    }

    #[test]
    fn rows_are_in_the_order_of_their_ids() {
        assert!(LANGUAGES.iter().enumerate().all(|(at, row)| row.index() == at));
    }
}
