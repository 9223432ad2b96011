//! The settings of an installation, for all pods.

use otel_webhook_api::{Delivery, sizes::AgentSizes};

use super::{
    cluster::Version, declarative, growth::MAX_POD_SIZE, helpers::Helpers, language::LanguageSet,
    reason::ObjectName, size::SizeLimits,
};

/// The settings of an installation, for all pods.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Languages that may be injected.
    pub languages: LanguageSet,
    /// Whether pods get the label and the annotations of the stamp.
    pub stamp: bool,
    /// How the resources of init containers are set.
    pub init_resources: InitResources,
    /// How agents get into pods if neither annotations nor Instrumentations say.
    pub delivery: Delivery,
    /// The least version of API server and kubelet for which `auto` mounts images.
    pub image_volumes_from: Version,
    /// Whether added emptyDir volumes are listed in
    /// `cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes`, so that they do not block
    /// scale-down.
    pub safe_to_evict: bool,
    /// The default Instrumentation, for namespaces without one. Every namespace may use it.
    pub default_instrumentation: Option<ObjectName>,
    /// Whether other namespaces may use an Instrumentation.
    pub cross_namespace: CrossNamespace,
    /// Whether an Instrumentation may give its init containers more privileges.
    pub privileged_init: PrivilegedInit,
    /// Containers that are skipped if none is named.
    pub helpers: Helpers,
    /// Whether an Instrumentation of v1beta1 injects only the languages that have an image, as with the operator.
    pub require_images: bool,
    /// The sizes of agents in their volumes.
    pub sizes: AgentSizes,
    /// The maximum size of an injected pod, in bytes.
    pub max_pod_size: usize,
    /// The maximum size of the file of `spec.declarativeConfig`, in bytes.
    pub max_declarative_config_size: usize,
    /// How large Instrumentations may be.
    pub size_limits: SizeLimits,
}

/// The version from which on image volumes cannot be disabled.
const LOCKED: Version = Version::new(1, 36);

impl Default for Settings {
    fn default() -> Self {
        Self {
            languages: LanguageSet::default(),
            stamp: true,
            safe_to_evict: true,
            init_resources: InitResources::Neutral,
            delivery: Delivery::InitContainer,
            image_volumes_from: LOCKED,
            default_instrumentation: None,
            cross_namespace: CrossNamespace::Allow,
            privileged_init: PrivilegedInit::Allow,
            helpers: Helpers::default(),
            require_images: false,
            sizes: AgentSizes::default(),
            max_pod_size: MAX_POD_SIZE,
            max_declarative_config_size: declarative::MAX_SIZE,
            size_limits: SizeLimits::default(),
        }
    }
}

/// How the resources of injected init containers are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
pub enum InitResources {
    /// Change neither the effective requests and limits nor the quality of service class of the pod.
    #[default]
    Neutral,
    /// Use the resources of the Instrumentation.
    // Within those of the whole pod, and as with `Neutral` if the namespace would reject the pod.
    Exact,
}

/// Whether an Instrumentation may give its init containers more privileges than containers have by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
pub enum PrivilegedInit {
    /// It may.
    #[default]
    Allow,
    /// It may not.
    Deny,
}

/// Whether other namespaces may use an Instrumentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
pub enum CrossNamespace {
    /// All pods may.
    #[default]
    Allow,
    /// Pods of the namespaces in the annotation otel-webhook/allowed-namespaces may; "*" is all namespaces.
    Granted,
    /// No pod may.
    Deny,
}

impl CrossNamespace {
    /// The advice for a namespace without an Instrumentation.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Allow => "create one, or name one as namespace/name",
            Self::Granted => "create one, or name one that is granted to the namespace as namespace/name",
            Self::Deny => "create one",
        }
    }
}
