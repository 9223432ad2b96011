//! Flags that several subcommands have.

use std::collections::BTreeMap;

use clap::{ArgAction, Args, ValueEnum};

use crate::{
    api::defaults::DefaultImages,
    inject::{self, Settings, language::LanguageSet, reason::ObjectName},
};

/// How injection is done; the same for the server and for files.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Injection")]
pub struct InjectionFlags {
    /// Languages that may be injected: a list parted by commas, or "all"
    #[arg(long, env = "OTEL_WEBHOOK_LANGUAGES", value_name = "LIST", value_parser = LanguageSet::parse,
        default_value_t = LanguageSet::default())]
    pub languages: LanguageSet,

    /// Mark injected pods with the label otel-webhook/injected and the annotation otel-webhook/status
    #[arg(long, env = "OTEL_WEBHOOK_STAMP", value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub stamp: bool,

    /// Name added volumes to the cluster autoscaler as no reason to keep a node; as --stamp where not given
    #[arg(long, env = "OTEL_WEBHOOK_SAFE_TO_EVICT", value_name = "BOOL", action = ArgAction::Set)]
    pub safe_to_evict: Option<bool>,

    /// Resources of the init containers: "neutral" changes neither what the pod asks for nor its class of
    /// service; "exact" takes them as the Instrumentation has them, as the operator does
    #[arg(long, env = "OTEL_WEBHOOK_INIT_RESOURCES", value_enum, default_value_t = InitResources::Neutral)]
    pub init_resources: InitResources,

    /// The Instrumentation for pods that ask with "true" where their namespace has none
    #[arg(long, env = "OTEL_WEBHOOK_DEFAULT_INSTRUMENTATION", value_name = "NAMESPACE/NAME",
        value_parser = object_name)]
    pub default_instrumentation: Option<ObjectName>,

    /// Default image of a language, in place of the built-in one; may be given several times
    #[arg(long, env = "OTEL_WEBHOOK_DEFAULT_IMAGE", value_name = "LANGUAGE=IMAGE", value_delimiter = ',',
        value_parser = language_image)]
    pub default_image: Vec<(String, String)>,
}

/// How the resources of init containers are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InitResources {
    /// So that neither the pod's effective request nor its class of service changes.
    Neutral,
    /// As the Instrumentation has them.
    Exact,
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
        }
    }

    /// The images where an Instrumentation names none.
    pub fn images(&self) -> DefaultImages {
        let overrides: BTreeMap<_, _> = self.default_image.iter().cloned().collect();
        DefaultImages { overrides, registry: None }
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
    let set = LanguageSet::parse(language)?;
    Ok((set.names(), image.to_owned()))
}
