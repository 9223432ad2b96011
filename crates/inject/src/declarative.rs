//! Declarative configuration: the file of `spec.declarativeConfig`, and which agents can use it.
//!
//! The file is the same for all pods of an Instrumentation: what injection derives are variables that it refers to. A
//! pod carries it in an annotation, which the downward API mounts; the agent reads it at its start.

mod migrate;
mod variables;

use std::{borrow::Cow, fmt};

use serde_json::{Value, json};

use super::{
    added::NewMount,
    edit::{Mounts, NewVolume, Volumes},
    env::{Entry, Env, SetBy},
    held::held,
    injection::{Injection, Plan},
    language::Language,
    probes,
    reason::{Reason, Taken},
    shown::{Names, shown},
    stamp,
};
use otel_webhook_api::{
    declarative::{self, ASSUME_SUPPORTED, ON_UNSUPPORTED},
    defaults::Release,
};

pub use migrate::{Migrated, migrated};
pub use variables::{Expressed, expressed};

/// The beginning of the annotations with the file; the language follows.
pub const ANNOTATION: &str = "otel-webhook/declarative-config-";

/// The beginning of the volume's name; the language follows.
const VOLUME: &str = "otel-declarative-config-";

/// The beginning of the mount path; the name of the container follows.
const MOUNT_PATH: &str = "/otel-auto-instrumentation-config-";

/// The name of the file.
const FILE: &str = "config.yaml";

/// The maximum size of a file by default, in bytes: each pod stores it.
pub const MAX_SIZE: usize = 16 * 1024;

/// The variable of the specification with the path of the file.
const STANDARD: &str = "OTEL_CONFIG_FILE";

/// The only variable that older agents read.
const EXPERIMENTAL: &str = "OTEL_EXPERIMENTAL_CONFIG_FILE";

/// What some versions of an agent do with the file.
pub struct Support {
    /// The language.
    pub language: &'static str,
    /// The versions of the default image: from the first, and below the second.
    pub versions: (Release, Option<Release>),
    /// The variable with the path of the file; `None` if these versions cannot use it.
    pub path: Option<&'static str>,
    /// Variables with a fixed value that are required as well.
    pub others: &'static [(&'static str, &'static str)],
    /// The formats that they read.
    pub formats: &'static [&'static str],
    /// Whether they sample by rules (`composite/development`).
    pub has_rules: bool,
    /// What is lost, or why they cannot use it.
    pub lost: &'static str,
    /// How it is known.
    pub source: &'static str,
}

/// Which agents can use the file; versions that no row has are unknown.
pub static SUPPORT: [Support; 9] = [
    Support {
        language: "java",
        versions: ((0, 0), Some((2, 17))),
        path: None,
        others: &[],
        formats: &[],
        has_rules: false,
        lost: "it reads no released file_format",
        source: "run on JDK 17 with 2.10.0 and 2.16.0: with 1.0 there is no telemetry",
    },
    Support {
        language: "java",
        versions: ((2, 18), Some((2, 25))),
        path: Some(EXPERIMENTAL),
        others: &[],
        formats: &["1.0"],
        has_rules: false,
        lost: "with samplers of composite/development it has no telemetry",
        source: "run on JDK 17 with 2.18.0, 2.21.0 and 2.23.0; composite/development with 2.18.0",
    },
    Support {
        language: "java",
        versions: ((2, 25), Some((2, 26))),
        path: Some(EXPERIMENTAL),
        others: &[],
        formats: &["1.0"],
        has_rules: true,
        lost: "",
        source: "run on JDK 17 with 2.25.0: OTEL_CONFIG_FILE is ignored; with 1.1 there is no telemetry",
    },
    Support {
        language: "java",
        versions: ((2, 26), Some((2, 29))),
        path: Some(STANDARD),
        others: &[],
        formats: &["1.0"],
        has_rules: true,
        lost: "",
        source: "run on JDK 17 with 2.26.1 and 2.28.1: with 1.1 there is no telemetry",
    },
    Support {
        language: "java",
        versions: ((2, 29), None),
        path: Some(STANDARD),
        others: &[],
        formats: &["1.0", "1.1"],
        has_rules: true,
        lost: "",
        source: "run on JDK 17 with 2.30.0: OTEL_EXPERIMENTAL_CONFIG_FILE is ignored",
    },
    Support {
        language: "dotnet",
        versions: ((1, 15), None),
        path: Some(STANDARD),
        others: &[("OTEL_EXPERIMENTAL_FILE_BASED_CONFIGURATION_ENABLED", "true")],
        formats: &["1.0"],
        has_rules: false,
        lost: "instrumentations have to be listed in the file, and certificates stay in variables",
        source: "docs/file-based-configuration.md of opentelemetry-dotnet-instrumentation; not run",
    },
    Support {
        language: "python",
        versions: ((0, 0), Some((0, 66))),
        path: None,
        others: &[],
        formats: &[],
        has_rules: false,
        lost: "its image lacks the packages that read the file",
        source: "run with 0.64b0 and 0.65b0: an error in the log, and no telemetry",
    },
    Support {
        language: "nodejs",
        versions: ((0, 0), Some((0, 79))),
        path: None,
        others: &[],
        formats: &[],
        has_rules: false,
        lost: "it ignores the file without a message",
        source: "run with 0.78.0",
    },
    Support {
        language: "dotnet",
        versions: ((0, 0), Some((1, 15))),
        path: None,
        others: &[],
        formats: &[],
        has_rules: false,
        lost: "it cannot read a file",
        source: "changelog of opentelemetry-dotnet-instrumentation 1.15",
    },
];

/// Languages with agents that have no such file in any version. Their variables are not those of an SDK in the container, so
/// that these do not stand for the file either.
const NEVER: [&str; 3] = ["go", "apache-httpd", "nginx"];

/// The compiled file of an Instrumentation.
#[derive(Debug)]
pub struct Declarative {
    /// The field as it was written, for the hash.
    pub field: Value,
    /// The file as it is delivered.
    pub text: String,
    /// The same with a rule that drops the spans of probes, if that was asked for and its sampler can have one.
    without_probes: Option<String>,
    /// The file's format.
    format: String,
    /// Whether unknown agents are expected to use it.
    assume: bool,
    /// What agents that cannot use it get instead, if they are not skipped.
    instead: Option<Expressed>,
}

held!(Declarative: field, text, without_probes, format, instead; assume);

impl Declarative {
    /// Compiles the field of a specification. `unnamed` is the name of services
    /// without `OTEL_SERVICE_NAME`; `None` if each container gets that.
    pub fn new(field: &Value, drops_probes: bool, unnamed: Option<&str>) -> Self {
        let document = declarative::document(field);
        let ruled = drops_probes.then(|| probes::with_rule(&document)).flatten();
        Self {
            without_probes: ruled.map(|document| declarative::yaml(&with_resource(&document, unnamed))),
            text: declarative::yaml(&with_resource(&document, unnamed)),
            format: document["file_format"].as_str().unwrap_or_default().to_owned(),
            assume: field[ASSUME_SUPPORTED] == true,
            instead: (field[ON_UNSUPPORTED] == "env").then(|| expressed(&document)),
            field: field.clone(),
        }
    }
}

/// The document with the attributes that injection derives. Those that it sets itself override them.
fn with_resource(document: &Value, unnamed: Option<&str>) -> Value {
    const ATTRIBUTES: &str = "${OTEL_RESOURCE_ATTRIBUTES:-}";
    let mut document = document.clone();
    let resource = &mut document["resource"];
    let sets_name = |one: &Value| one["name"] == "service.name";
    if !resource["attributes"].as_array().is_some_and(|own| own.iter().any(sets_name)) {
        // An attribute without a value is not valid.
        let name = match unnamed {
            None => "${OTEL_SERVICE_NAME}".to_owned(),
            Some(unnamed) => format!("${{OTEL_SERVICE_NAME:-{unnamed}}}"),
        };
        let name = json!({"name": "service.name", "value": name});
        match resource["attributes"].as_array_mut() {
            Some(own) => own.push(name),
            None => resource["attributes"] = json!([name]),
        }
    }
    // Of two entries with the same key, the last one counts.
    resource["attributes_list"] = match resource["attributes_list"].as_str() {
        Some(own) if own.contains("OTEL_RESOURCE_ATTRIBUTES") => own.into(),
        Some(own) if !own.is_empty() => [ATTRIBUTES, ",", own].concat().into(),
        _ => ATTRIBUTES.into(),
    };
    document
}

/// What an agent gets of `spec.declarativeConfig`.
#[derive(Clone, Copy, Debug)]
pub enum Delivered<'p> {
    /// Nothing, since the Instrumentation has none.
    Nothing,
    /// The file.
    File {
        /// Its text.
        text: &'p str,
        /// The variable with its path.
        path: &'static str,
        /// Other variables that are required.
        others: &'static [(&'static str, &'static str)],
        /// What is lost.
        lost: &'static str,
        /// Whether it drops the spans of probes.
        drops_probes: bool,
    },
    /// The variables that express a part of it.
    Variables(&'p Expressed),
}

/// What the agent of a plan gets.
///
/// # Errors
/// The reason if it cannot use the file.
pub fn of<'p>(plan: &Plan<'p>) -> Result<Delivered<'p>, Reason> {
    let Some(own) = &plan.instrumentation.declarative else { return Ok(Delivered::Nothing) };
    match (support(plan.language, plan.image, own), &own.instead) {
        (Ok(Usable { path, others, lost, has_rules }), _) => {
            let ruled = own.without_probes.as_deref().filter(|_| has_rules);
            let drops_probes = ruled.is_some();
            Ok(Delivered::File { text: ruled.unwrap_or(&own.text), path, others, lost, drops_probes })
        }
        (Err(_), Some(instead)) if !NEVER.contains(&plan.language.name) => Ok(Delivered::Variables(instead)),
        (Err(why), _) => Err(why),
    }
}

/// Whether the agent of a plan gets the file, so that it ignores most variables.
pub fn is_file(plan: &Plan<'_>) -> bool {
    matches!(of(plan), Ok(Delivered::File { .. }))
}

/// How an agent uses the file.
struct Usable {
    path: &'static str,
    others: &'static [(&'static str, &'static str)],
    lost: &'static str,
    has_rules: bool,
}

/// The name of an agent in sentences.
fn agent_of(language: &Language, image: &str) -> String {
    if image.is_empty() { format!("the SDK of {}", language.name) } else { image.to_owned() }
}

fn support(language: &Language, image: &str, own: &Declarative) -> Result<Usable, Reason> {
    let agent = agent_of(language, image);
    let unsupported = |why: &str, valid: String| {
        Err(Reason::DeclarativeConfigUnsupported { agent: agent.clone(), why: why.to_owned(), valid })
    };
    if NEVER.contains(&language.name) {
        return unsupported(
            "agents of this language have no configuration file",
            "use an Instrumentation without it".to_owned(),
        );
    }
    let usable =
        |row: &Support, path| Usable { path, others: row.others, lost: row.lost, has_rules: row.has_rules };
    let rows = || SUPPORT.iter().filter(|row| row.language == language.name);
    let known = language.defaults.filter(|defaults| defaults.is_name_of(image));
    let release = known.and_then(|_| otel_webhook_api::defaults::release(image));
    let row = release.and_then(|release| {
        rows().find(|row| release >= row.versions.0 && row.versions.1.is_none_or(|end| release < end))
    });
    let Some(row) = row else {
        let newest = rows().filter(|row| row.path.is_some()).max_by_key(|row| row.versions.0);
        return match newest {
            _ if !own.assume => unsupported(
                "it is not known whether this image reads such a file",
                "use an image that is known to, or set spec.declarativeConfig.assumeSupported".to_owned(),
            ),
            Some(row) => Ok(usable(row, row.path.unwrap_or(STANDARD))),
            None => Ok(Usable { path: STANDARD, others: &[], lost: "", has_rules: false }),
        };
    };
    let reads = |row: &&Support| row.path.is_some() && row.formats.contains(&&*own.format);
    match row.path {
        Some(path) if row.formats.contains(&&*own.format) => Ok(usable(row, path)),
        found => {
            let formats = row.formats.join(", ");
            let other =
                || format!("it reads file_format {formats}, and has no telemetry with {}", own.format);
            let why = found.map_or_else(|| row.lost.to_owned(), |_| other());
            let first = rows().filter(reads).map(|row| row.versions.0).min();
            let valid = first.map_or_else(
                || "no known version can; set onUnsupported: env, or use another Instrumentation".to_owned(),
                |(major, minor)| format!("versions from {major}.{minor} on read file_format {}", own.format),
            );
            unsupported(&why, valid)
        }
    }
}

/// The key of the annotation of a plan, without the prefix, and the end of the volume's name.
fn suffix(plan: &Plan<'_>) -> String {
    plan.agent().map_or_else(|| plan.language.name.to_owned(), |agent| ["agent-", agent].concat())
}

/// Checks that the agent of a plan can use the file, and that the pod can carry it.
///
/// # Errors
/// The reason.
pub fn check(injection: &Injection<'_, '_>) -> Result<(), Reason> {
    let Delivered::File { text, .. } = of(injection.plan)? else { return Ok(()) };
    let most = injection.settings.max_declarative_config_size;
    if text.len() > most {
        return Err(Reason::DeclarativeConfigTooLarge { size: text.len(), most });
    }
    let suffix = suffix(injection.plan);
    let key = [ANNOTATION, &suffix].concat();
    let added = injection.edit.annotations.iter().map(|(key, value)| (key.as_str(), *value));
    if !stamp::has_room(&injection.facts.pod.metadata.annotations, added, (&key, text)) {
        return Err(Reason::AnnotationsTooLarge { size: text.len(), most: stamp::MOST_ANNOTATIONS });
    }
    let volume = volume_of(&suffix);
    if injection.edit.has_volume(&volume) {
        return Err(Reason::taken(Taken::Volume, &volume));
    }
    Ok(())
}

/// The name of the volume with the file of an annotation, of which `suffix` is the end.
pub fn volume_of(suffix: &str) -> String {
    [VOLUME, suffix].concat()
}

/// The mount path of the file in a container.
pub fn mount_path(container: &str) -> String {
    [MOUNT_PATH, container].concat()
}

/// What a container gets of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The agent cannot use the file, and has variables instead.
    ByVariables {
        /// The paths of what these do not express.
        lost: Names,
    },
    /// The agent reads the file.
    Read {
        /// The agent.
        agent: String,
        /// The variable with the path.
        variable: &'static str,
        /// What is lost; empty if nothing is.
        lost: &'static str,
    },
    /// The container names its own file.
    OwnFile {
        /// The variable with its path.
        variable: &'static str,
    },
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByVariables { lost } => write!(
                f,
                "the agent cannot use the file of spec.declarativeConfig and has variables instead; lost: {lost}"
            ),
            Self::Read { agent, variable, lost } => {
                let separator = if lost.is_empty() { "" } else { "; " };
                write!(
                    f,
                    "{} reads the file of spec.declarativeConfig by {variable}{separator}{lost}",
                    shown(agent)
                )
            }
            Self::OwnFile { variable } => {
                write!(f, "the container sets {variable}, so spec.declarativeConfig is not used")
            }
        }
    }
}

/// A container, the variables of the language included, but no common ones.
pub struct Target<'t, 'p> {
    /// Its name.
    pub name: &'p str,
    /// Its variables.
    pub env: &'t mut Env<'p>,
    /// Its mounts.
    pub mounts: &'t mut Mounts<'p>,
    /// The added volumes of the pod.
    pub volumes: &'t mut Volumes<'p>,
}

impl<'p> Delivered<'p> {
    /// Adds the file, or the variables that stand for it, to a container. Returns a note about what it gets, and the
    /// annotation to set.
    pub fn add(self, plan: &Plan<'_>, target: Target<'_, 'p>) -> (Option<Limit>, Option<(String, &'p str)>) {
        let Target { name, env, mounts, volumes } = target;
        let (text, path, others, lost) = match self {
            Delivered::Nothing => return (None, None),
            Delivered::Variables(Expressed { settings, lost }) => {
                env.set_defaults(settings, SetBy::Common);
                let lost = Names::of(lost.iter().cloned());
                return (Some(Limit::ByVariables { lost }), None);
            }
            Delivered::File { path, .. } if env.has(path) => {
                return (Some(Limit::OwnFile { variable: path }), None);
            }
            Delivered::File { text, path, others, lost, .. } => (text, path, others, lost),
        };
        let suffix = suffix(plan);
        let (volume, key) = (volume_of(&suffix), [ANNOTATION, &suffix].concat());
        let folder = mount_path(name);
        env.set_default(Entry::new(path, [&folder, "/", FILE].concat()));
        for (name, value) in others {
            env.set_default(Entry::new(*name, *value));
        }
        mounts.add(NewMount { read_only: true, ..NewMount::new(volume.clone(), folder) });
        let agent = agent_of(plan.language, plan.image);
        let limit = Some(Limit::Read { agent, variable: path, lost });
        if volumes.has(&volume) {
            return (limit, None);
        }
        let source = json!({"downwardAPI": {"items": [
            {"path": FILE, "fieldRef": {"apiVersion": "v1", "fieldPath": format!("metadata.annotations['{key}']")}},
        ]}});
        volumes.add(NewVolume::new(volume, Cow::Owned(source)));
        (limit, Some((key, text)))
    }
}
