//! What to do about a reason that does not say it itself.

use super::reason::Reason;

impl Reason {
    /// What to do. `None` if the sentence says it, or if there is nothing to do.
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::LanguageDisabled { .. } => {
                "enable the language by --languages (in the chart: injection.languages), or remove the annotation"
            }
            Self::NoneSelectsPod { .. } => {
                "change the labels or the selectors, or name an Instrumentation in the annotation"
            }
            Self::AgentNotFound { .. } => "name one of these, or add it to an Instrumentation",
            Self::InstrumentationNotFound { .. } => "name one of these, or create it",
            Self::InstrumentationNotGranted { .. } => "name a granted one, or have the namespace granted",
            Self::InstrumentationInvalid { .. } => {
                "fix the Instrumentation; otel-webhook validate lists all errors"
            }
            Self::ContainerNotFound { .. } | Self::NoContainerNamed { .. } => {
                "name containers of the pod in the annotation"
            }
            Self::NamespaceLanguageIgnored { .. } | Self::SelectorLanguageIgnored { .. } => {
                "list the containers of each language"
            }
            Self::InitContainer { .. } => "name another container",
            Self::PlatformUnknown { .. } => "set one of the valid platforms",
            Self::NameTaken { .. } => "rename the pod's own, or opt out",
            Self::WindowsPod => "opt out",
            Self::ProcessNamespaceNotShared => "remove spec.shareProcessNamespace",
            Self::SeveralContainers { .. } => "name one container",
            Self::PodSecurity { .. } => {
                "change the security context of the Instrumentation, or the level of the namespace"
            }
            Self::DirectiveInvalid { .. } => "correct the field",
            Self::AutoHomeSet => "remove the variable, or opt out",
            Self::EphemeralStorage { .. } => "raise the limit of ephemeral storage; see docs/sizes.md",
            Self::NoContainers | Self::ContainerUnreadable { .. } => "correct the containers of the pod",
            _ => return None,
        })
    }
}
