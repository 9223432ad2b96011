//! Flags that several subcommands have.

use std::collections::BTreeMap;

use clap::{ArgAction, Args, ValueEnum};

use otel_webhook_api::{
    defaults::{DefaultImages, LANGUAGES},
    quantity::Quantity,
    sizes::AgentSizes,
};
use otel_webhook_inject as inject;
use otel_webhook_inject::{Settings, helpers::Helpers, language::LanguageSet, reason::ObjectName};

/// The source of Instrumentations that is a cluster, in place of a directory.
pub const KUBERNETES: &str = "kubernetes";

/// How injection is done; the same for the server and for files.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Injection")]
pub struct InjectionFlags {
    /// Languages that may be injected: a list parted by commas, or "all"
    #[arg(long, env = "OTEL_WEBHOOK_LANGUAGES", value_name = "LIST", value_parser = LanguageSet::parse,
        default_value_t = LanguageSet::default())]
    pub languages: LanguageSet,

    /// Mark pods that asked with the label otel-webhook/injected (true, partial, false) and the annotation
    /// otel-webhook/status
    #[arg(long, env = "OTEL_WEBHOOK_STAMP", value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub stamp: bool,

    /// Name added volumes to the cluster autoscaler as no reason to keep a node; as --stamp where not given
    #[arg(long, env = "OTEL_WEBHOOK_SAFE_TO_EVICT", value_name = "BOOL", action = ArgAction::Set)]
    pub safe_to_evict: Option<bool>,

    /// Resources of the init containers: "neutral" changes neither the pod's effective requests and limits
    /// nor its class of service; "exact" takes them as the Instrumentation has them, as the operator does,
    /// unless a LimitRange or a ResourceQuota would reject the pod for them
    #[arg(long, env = "OTEL_WEBHOOK_INIT_RESOURCES", value_enum, default_value_t = InitResources::Neutral)]
    pub init_resources: InitResources,

    /// The Instrumentation for pods that ask with "true" where their namespace has none
    #[arg(long, env = "OTEL_WEBHOOK_DEFAULT_INSTRUMENTATION", value_name = "NAMESPACE/NAME",
        value_parser = object_name)]
    pub default_instrumentation: Option<ObjectName>,

    /// Whether an Instrumentation is used from other namespaces than its own: "allow", as the operator does;
    /// "granted" from those that its annotation otel-webhook/allowed-namespaces lists; "deny". The one of
    /// --default-instrumentation is used from all
    #[arg(long, env = "OTEL_WEBHOOK_CROSS_NAMESPACE", value_enum, default_value_t = CrossNamespace::Allow)]
    pub cross_namespace: CrossNamespace,

    /// Containers that are skipped where none is named, beside the built-in list of proxies and helpers:
    /// comma-separated names, each with or without a * at its end; may be given several times
    #[arg(long, env = "OTEL_WEBHOOK_HELPER_CONTAINERS", value_name = "NAMES", value_delimiter = ',',
        value_parser = Helpers::parse_name)]
    helper_containers: Vec<String>,

    /// How much ephemeral storage an agent takes, in place of the documented size, such as java=40Mi; "extension"
    /// is each extension of the Java agent; may be given several times
    #[arg(long, env = "OTEL_WEBHOOK_AGENT_SIZE", value_name = "LANGUAGE=SIZE", value_delimiter = ',',
        value_parser = AgentSizes::parse_one)]
    agent_size: Vec<(String, Quantity)>,

    #[command(flatten)]
    images: ImageFlags,
}

/// Which images are taken where an Instrumentation names none.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Images")]
pub struct ImageFlags {
    /// Default image of a language, in place of the built-in one; may be given several times. Instrumentations
    /// whose image is a recorded default follow it, but never to an older version of the same repository or
    /// across a version with breaking changes (Java 2.0.0, .NET 1.3.0)
    #[arg(long, env = "OTEL_WEBHOOK_DEFAULT_IMAGE", value_name = "LANGUAGE=IMAGE", value_delimiter = ',',
        value_parser = language_image)]
    default_image: Vec<(String, String)>,

    /// Registry in place of the built-in default images' own; recorded defaults follow it as with
    /// --default-image, and images that somebody chose are left alone
    #[arg(long, env = "OTEL_WEBHOOK_IMAGE_REGISTRY", value_name = "HOST[/PATH]", value_parser = registry)]
    image_registry: Option<String>,
}

/// How the resources of init containers are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InitResources {
    /// So that neither the pod's effective request nor its class of service changes.
    Neutral,
    /// As the Instrumentation has them.
    Exact,
}

/// Whether Instrumentations are used from other namespaces than their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CrossNamespace {
    /// From every namespace.
    Allow,
    /// From those that the annotation otel-webhook/allowed-namespaces lists, or from all where it is "*".
    Granted,
    /// From none.
    Deny,
}

impl InjectionFlags {
    /// What the core is told.
    pub fn settings(&self) -> Settings {
        Settings {
            languages: self.languages,
            stamp: self.stamp,
            // Without the stamp a pod gets nothing but what injection takes.
            safe_to_evict: self.safe_to_evict.unwrap_or(self.stamp),
            init_resources: match self.init_resources {
                InitResources::Neutral => inject::InitResources::Neutral,
                InitResources::Exact => inject::InitResources::Exact,
            },
            default_instrumentation: self.default_instrumentation.clone(),
            cross_namespace: match self.cross_namespace {
                CrossNamespace::Allow => inject::CrossNamespace::Allow,
                CrossNamespace::Granted => inject::CrossNamespace::Granted,
                CrossNamespace::Deny => inject::CrossNamespace::Deny,
            },
            helpers: Helpers::with(self.helper_containers.iter().cloned()),
            sizes: AgentSizes::with(self.agent_size.iter().cloned()),
        }
    }

    /// The images where an Instrumentation names none.
    pub fn images(&self) -> DefaultImages {
        self.images.images()
    }
}

impl ImageFlags {
    /// The images where an Instrumentation names none.
    pub fn images(&self) -> DefaultImages {
        let overrides: BTreeMap<_, _> = self.default_image.iter().cloned().collect();
        DefaultImages { overrides, registry: self.image_registry.clone() }
    }
}

fn object_name(text: &str) -> Result<ObjectName, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok(ObjectName { namespace: namespace.into(), name: name.into() })
        }
        _ => Err("expected NAMESPACE/NAME, such as observability/default".to_owned()),
    }
}

fn language_image(text: &str) -> Result<(String, String), String> {
    let (language, image) =
        text.split_once('=').ok_or("expected LANGUAGE=IMAGE, such as java=registry/java:2")?;
    if image.is_empty() {
        return Err(format!("no image is given for \"{language}\""));
    }
    let names = LANGUAGES.map(|language| language.language);
    if !names.contains(&language) {
        return Err(format!("\"{language}\" has no image; valid: {}", names.join(", ")));
    }
    Ok((language.to_owned(), image.to_owned()))
}

fn registry(text: &str) -> Result<String, String> {
    let text = text.trim_end_matches('/');
    if text.is_empty() || text.contains("://") || text.contains(char::is_whitespace) {
        return Err("expected HOST[/PATH], such as registry.example.com/mirror".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_given_for_a_language_that_has_one() {
        let given = language_image("apache-httpd=own:1").expect("valid");
        assert_eq!(given, ("apache-httpd".to_owned(), "own:1".to_owned()));
        for (text, problem) in [
            ("java", "expected LANGUAGE=IMAGE"),
            ("java=", "no image is given for \"java\""),
            ("sdk=own:1", "\"sdk\" has no image; valid: java, nodejs"),
        ] {
            let found = language_image(text).expect_err(text);
            assert!(found.contains(problem), "{found}");
        }
    }

    #[test]
    fn a_registry_is_a_host_with_or_without_a_path() {
        assert_eq!(registry("mirror.example.com/otel/").as_deref(), Ok("mirror.example.com/otel"));
        for text in ["", "/", "https://mirror.example.com", "a b"] {
            assert!(registry(text).is_err(), "{text}");
        }
    }
}
