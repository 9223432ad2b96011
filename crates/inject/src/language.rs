//! The language table: one row of data for each language, in the order of injection.
//!
//! Nothing outside the table and the code of the agents ([`crate::agents`]) checks
//! which language it handles: each difference is a field of the row.

use std::fmt;

use otel_webhook_api::{
    AGENTS_FIELD, InstrumentationSpec, LanguageSettings, defaults, defaults::LanguageDefaults,
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

/// Volume and init container of the javaagent.
pub const JAVA_AGENT: &str = "opentelemetry-auto-instrumentation-java";
/// The prefix of the names of init containers for Java's extensions; a number follows.
pub const JAVA_EXTENSION: &str = "opentelemetry-auto-instrumentation-extension-";
/// Volume and init container of the agent for Node.js.
pub const NODEJS_AGENT: &str = "opentelemetry-auto-instrumentation-nodejs";
/// Volume and init container of the agent for Python.
pub const PYTHON_AGENT: &str = "opentelemetry-auto-instrumentation-python";
/// Volume and init container of the agent for .NET.
pub const DOTNET_AGENT: &str = "opentelemetry-auto-instrumentation-dotnet";
/// The sidecar with the agent for Go.
pub const GO_SIDECAR: &str = "opentelemetry-auto-instrumentation";
/// The init container that copies a web server's configuration, from the application's image.
pub const WEB_SERVER_CLONE: &str = "otel-agent-source-container-clone";
/// The init container that adds the module to the configuration of Apache HTTPD.
pub const APACHE_ATTACH: &str = "otel-agent-attach-apache";
/// The init container that adds the module to the configuration of nginx.
pub const NGINX_ATTACH: &str = "otel-agent-attach-nginx";
/// The prefix of the names of volume and init container of an agent in `spec.agents`; its name follows.
pub const GENERIC_AGENT: &str = "opentelemetry-auto-instrumentation-agent-";

/// Java.
pub const JAVA: Language = Language {
    id: LanguageId::Java,
    name: "java",
    inject: "inject-java",
    containers: "java-container-names",
    annotations: &[],
    field: "java",
    names: Names::Instrumentation,
    defaults: Some(&defaults::JAVA),
    enabled_by_default: true,
    shape: Shape::Copied,
    image_volume: ImageVolume::Whole,
    exports_from_target: true,
    in_init_containers: true,
    extended: &["JAVA_TOOL_OPTIONS"],
    marks: &[Mark::Init(JAVA_AGENT), Mark::InitWithNumber(JAVA_EXTENSION)],
    settings: |spec| spec.java.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// Node.js.
pub const NODEJS: Language = Language {
    id: LanguageId::Nodejs,
    name: "nodejs",
    inject: "inject-nodejs",
    containers: "nodejs-container-names",
    annotations: &[],
    field: "nodejs",
    names: Names::Instrumentation,
    defaults: Some(&defaults::NODEJS),
    enabled_by_default: true,
    shape: Shape::Copied,
    image_volume: ImageVolume::Folder,
    exports_from_target: true,
    in_init_containers: true,
    extended: &["NODE_OPTIONS"],
    marks: &[Mark::Init(NODEJS_AGENT)],
    settings: |spec| spec.nodejs.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// Python.
pub const PYTHON: Language = Language {
    id: LanguageId::Python,
    name: "python",
    inject: "inject-python",
    containers: "python-container-names",
    annotations: &["otel-python-platform"],
    field: "python",
    names: Names::Instrumentation,
    defaults: Some(&defaults::PYTHON),
    enabled_by_default: true,
    shape: Shape::Copied,
    image_volume: ImageVolume::Folder,
    exports_from_target: true,
    in_init_containers: true,
    extended: &["PYTHONPATH"],
    marks: &[Mark::Init(PYTHON_AGENT)],
    settings: |spec| spec.python.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// .NET.
pub const DOTNET: Language = Language {
    id: LanguageId::Dotnet,
    name: "dotnet",
    inject: "inject-dotnet",
    containers: "dotnet-container-names",
    annotations: &["otel-dotnet-auto-runtime"],
    field: "dotnet",
    names: Names::Instrumentation,
    defaults: Some(&defaults::DOTNET),
    enabled_by_default: true,
    shape: Shape::Copied,
    image_volume: ImageVolume::Folder,
    exports_from_target: true,
    in_init_containers: true,
    extended: &["DOTNET_STARTUP_HOOKS", "DOTNET_ADDITIONAL_DEPS", "DOTNET_SHARED_STORE"],
    marks: &[Mark::Init(DOTNET_AGENT)],
    settings: |spec| spec.dotnet.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// Go.
pub const GO: Language = Language {
    id: LanguageId::Go,
    name: "go",
    inject: "inject-go",
    containers: "go-container-names",
    annotations: &["otel-go-auto-target-exe"],
    field: "go",
    names: Names::Instrumentation,
    defaults: Some(&defaults::GO),
    enabled_by_default: false,
    shape: Shape::Sidecar,
    image_volume: ImageVolume::NotCopied,
    exports_from_target: false,
    in_init_containers: false,
    extended: &[],
    marks: &[Mark::Sidecar(GO_SIDECAR)],
    settings: |spec| spec.go.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// Apache HTTPD.
pub const APACHE_HTTPD: Language = Language {
    id: LanguageId::ApacheHttpd,
    name: "apache-httpd",
    inject: "inject-apache-httpd",
    containers: "apache-httpd-container-names",
    annotations: &[],
    field: "apacheHttpd",
    names: Names::Instrumentation,
    defaults: Some(&defaults::APACHE_HTTPD),
    enabled_by_default: true,
    shape: Shape::WebServer,
    image_volume: ImageVolume::Never,
    exports_from_target: false,
    in_init_containers: false,
    extended: &[],
    marks: &[Mark::Init(WEB_SERVER_CLONE), Mark::Init(APACHE_ATTACH)],
    settings: |spec| spec.apache_httpd.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// nginx.
pub const NGINX: Language = Language {
    id: LanguageId::Nginx,
    name: "nginx",
    inject: "inject-nginx",
    // The operator's own spelling, unlike that of the other languages.
    containers: "inject-nginx-container-names",
    annotations: &[],
    field: "nginx",
    names: Names::Instrumentation,
    defaults: Some(&defaults::NGINX),
    enabled_by_default: false,
    shape: Shape::WebServer,
    image_volume: ImageVolume::Never,
    exports_from_target: false,
    in_init_containers: false,
    extended: &["LD_LIBRARY_PATH"],
    marks: &[Mark::Init(WEB_SERVER_CLONE), Mark::Init(NGINX_ATTACH)],
    settings: |spec| spec.nginx.as_ref().map(LanguageSettings::from).unwrap_or_default(),
};

/// SDK only: variables for applications that contain an SDK.
pub const SDK: Language = Language {
    id: LanguageId::Sdk,
    name: "sdk",
    inject: "inject-sdk",
    containers: "sdk-container-names",
    annotations: &[],
    field: "",
    names: Names::Instrumentation,
    defaults: None,
    enabled_by_default: true,
    shape: Shape::Variables,
    image_volume: ImageVolume::NotCopied,
    exports_from_target: true,
    in_init_containers: true,
    extended: &[],
    marks: &[],
    settings: |_| LanguageSettings::default(),
};

/// Agents that Instrumentations describe themselves, in `spec.agents`.
pub const AGENT: Language = Language {
    id: LanguageId::Agent,
    name: "agent",
    inject: "inject-agent",
    containers: "agent-container-names",
    annotations: &[],
    field: AGENTS_FIELD,
    names: Names::Agents,
    defaults: None,
    enabled_by_default: true,
    shape: Shape::Copied,
    image_volume: ImageVolume::Folder,
    exports_from_target: true,
    in_init_containers: true,
    extended: &[],
    marks: &[Mark::InitWithName(GENERIC_AGENT)],
    settings: |_| LanguageSettings::default(),
};

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
