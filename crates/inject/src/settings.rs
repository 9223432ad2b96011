//! What an installation decides for all pods.

use otel_webhook_api::sizes::AgentSizes;

use super::{helpers::Helpers, language::LanguageSet, reason::ObjectName};

/// What an installation decides for all pods.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Languages that may be injected.
    pub languages: LanguageSet,
    /// Whether injected pods carry a label and an annotation that say so.
    pub stamp: bool,
    /// How the resources of init containers are set.
    pub init_resources: InitResources,
    /// Whether added emptyDir volumes are listed in `cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes`,
    /// so that they do not block scale-down.
    pub safe_to_evict: bool,
    /// The Instrumentation for namespaces that have none. Every namespace may use it.
    pub default_instrumentation: Option<ObjectName>,
    /// Whether other Instrumentations are used from other namespaces than their own.
    pub cross_namespace: CrossNamespace,
    /// Containers that are skipped where none is named.
    pub helpers: Helpers,
    /// How much space agents take in their volumes.
    pub sizes: AgentSizes,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            languages: LanguageSet::default(),
            stamp: true,
            safe_to_evict: true,
            init_resources: InitResources::Neutral,
            default_instrumentation: None,
            cross_namespace: CrossNamespace::Allow,
            helpers: Helpers::default(),
            sizes: AgentSizes::default(),
        }
    }
}

/// How the resources of injected init containers are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitResources {
    /// As the Instrumentation has them, as the operator does; but within what the pod as a whole
    /// may have, and as with `Neutral` where the namespace would reject the pod for them.
    Exact,
    /// So that neither the pod's effective requests and limits nor its class of service change.
    #[default]
    Neutral,
}

/// Whether Instrumentations are used from other namespaces than their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrossNamespace {
    /// From every namespace, as the operator does.
    #[default]
    Allow,
    /// From those that the Instrumentation allows.
    Granted,
    /// From none.
    Deny,
}

impl CrossNamespace {
    /// What there is to do in a namespace that has no Instrumentation.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Allow => "create one, or name one as namespace/name",
            Self::Granted => "create one, or name one that is granted to the namespace as namespace/name",
            Self::Deny => "create one",
        }
    }
}
