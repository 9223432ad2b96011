//! What a row of the language table says.

use std::fmt;

use otel_webhook_api::{InstrumentationSpec, LanguageSettings, defaults::LanguageDefaults};

/// One row of the table.
pub struct Language {
    /// Which language it is; the code of its agent goes by that.
    pub id: LanguageId,
    /// Its name, as on the command line, in logs and metrics.
    pub name: &'static str,
    /// The annotation that opts in, after the prefix.
    pub inject: &'static str,
    /// The annotation that lists its containers, after the prefix.
    pub containers: &'static str,
    /// The annotations that only this language reads, after the prefix.
    pub annotations: &'static [&'static str],
    /// What applies where an Instrumentation does not say; none for a language without an image.
    pub defaults: Option<&'static LanguageDefaults>,
    /// Whether the operator's default installation has it on.
    pub enabled_by_default: bool,
    /// What is added to a pod.
    pub shape: Shape,
    /// Whether the agent exports by the variables of its target.
    pub exports_from_target: bool,
    /// Whether init containers can be targets.
    pub in_init_containers: bool,
    /// The variables whose value in the container is extended.
    pub extended: &'static [&'static str],
    /// The containers that mark a pod as injected.
    pub marks: &'static [Mark],
    /// The language's part of an Instrumentation.
    pub settings: for<'s> fn(&'s InstrumentationSpec) -> LanguageSettings<'s>,
}

/// Which language a row is about, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanguageId {
    /// Java.
    Java,
    /// Node.js.
    Nodejs,
    /// Python.
    Python,
    /// .NET.
    Dotnet,
    /// Go.
    Go,
    /// Apache HTTPD.
    ApacheHttpd,
    /// nginx.
    Nginx,
    /// Variables for applications with an SDK of their own.
    Sdk,
}

/// What a language adds to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Init containers that copy an agent into a volume, which the targets mount.
    Copied,
    /// Init containers that add a module to a copy of a web server's configuration.
    WebServer,
    /// A container beside the application's.
    Sidecar,
    /// Variables alone.
    Variables,
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

impl fmt::Debug for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Language {
    /// Its position in the table.
    pub fn index(&self) -> usize {
        self.id as usize
    }
}
