//! The row of the language table.

use std::fmt;

use otel_webhook_api::{InstrumentationSpec, LanguageSettings, defaults::LanguageDefaults};

/// One row of the table.
pub struct Language {
    /// The language; it selects the code of the agent.
    pub id: LanguageId,
    /// Its name on the command line, in logs and metrics.
    pub name: &'static str,
    /// The annotation that opts in, without the prefix.
    pub inject: &'static str,
    /// The annotation with its containers, without the prefix.
    pub containers: &'static str,
    /// The annotations of this language only, without the prefix.
    pub annotations: &'static [&'static str],
    /// Its field in the specification; empty if it has none.
    pub field: &'static str,
    /// What the annotation names.
    pub names: Names,
    /// The defaults of an Instrumentation; `None` for a language without an image.
    pub defaults: Option<&'static LanguageDefaults>,
    /// Whether it is enabled by default: as in the operator's default installation, which has no agents of Instrumentations.
    pub enabled_by_default: bool,
    /// What is added to a pod.
    pub shape: Shape,
    /// How its image can be mounted in place of a copy.
    pub image_volume: ImageVolume,
    /// Whether the agent reads the exporter's variables of its target.
    pub exports_from_target: bool,
    /// Whether init containers can be targets.
    pub in_init_containers: bool,
    /// The extended variables.
    pub extended: &'static [&'static str],
    /// The containers of an injected pod.
    pub marks: &'static [Mark],
    /// The language's part of an Instrumentation.
    pub settings: for<'s> fn(&'s InstrumentationSpec) -> LanguageSettings<'s>,
}

/// The languages, in the order of the table.
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
    /// Variables for applications that contain an SDK.
    Sdk,
    /// Agents that Instrumentations describe themselves.
    Agent,
}

/// What a language adds to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Init containers that copy an agent into a volume for the targets.
    Copied,
    /// Init containers that add a module to a copy of a web server's configuration.
    WebServer,
    /// A sidecar.
    Sidecar,
    /// Variables only.
    Variables,
}

/// What the annotation that opts in can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// An Instrumentation.
    Instrumentation,
    /// Agents of `spec.agents`.
    Agents,
}

/// How the image of an agent can be mounted in place of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageVolume {
    /// The agent is not copied.
    NotCopied,
    /// Not at all: the init containers write configuration as well.
    Never,
    /// As a whole: the agent is at the root of the image.
    Whole,
    /// A folder of it, by `subPath`.
    Folder,
}

/// A container that only the operator or the webhook adds.
#[derive(Clone, Copy, Debug)]
pub enum Mark {
    /// An init container.
    Init(&'static str),
    /// An init container with a name that ends with a number.
    InitWithNumber(&'static str),
    /// An init container with a name that ends with that of an agent.
    InitWithName(&'static str),
    /// A sidecar: a regular container, or a native sidecar in a pod that ends (D42).
    Sidecar(&'static str),
}

impl Mark {
    /// Whether it matches a container of the pod. `init` is for init containers other than native sidecars.
    pub fn is(self, init: bool, name: &str) -> bool {
        match self {
            Self::Init(mark) => init && name == mark,
            Self::InitWithNumber(mark) => init && name.strip_prefix(mark).is_some_and(is_number),
            Self::InitWithName(mark) => init && name.strip_prefix(mark).is_some_and(|rest| !rest.is_empty()),
            Self::Sidecar(mark) => !init && name == mark,
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
    /// Whether the annotation names agents of `spec.agents`, and not an Instrumentation.
    pub fn names_agents(&self) -> bool {
        self.names == Names::Agents
    }

    /// Whether its image can be mounted in place of a copy.
    pub fn can_be_mounted(&self) -> bool {
        matches!(self.image_volume, ImageVolume::Whole | ImageVolume::Folder)
    }

    /// Whether a volume with the image of the agent has this name: that of the init container it stands in for.
    pub fn is_image_volume(&self, name: &str) -> bool {
        self.can_be_mounted() && self.marks.iter().any(|mark| mark.is(true, name))
    }

    /// Its position in the table.
    pub fn index(&self) -> usize {
        self.id as usize
    }
}
