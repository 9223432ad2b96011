//! What pauses injection: the annotation `otel-webhook/paused` of an Instrumentation, of a namespace, or of the
//! namespace or the Lease of the release.
//!
//! An Instrumentation is selected as if nothing were paused, so that a pause never makes a pod use another one.

use std::fmt;

use super::object_name::ObjectName;
use otel_webhook_api::annotations::PAUSED_ANNOTATION;

/// An object that pauses injection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pause {
    /// The namespace of the release: into all pods.
    Release(Box<str>),
    /// The Lease of the release: into all pods.
    Lease(ObjectName),
    /// A namespace: into its pods.
    Namespace(Box<str>),
    /// An Instrumentation: into the pods that would use it.
    Instrumentation(ObjectName),
}

impl Pause {
    /// The pods that are paused, as labels of metrics name them.
    pub const SCOPES: [&str; 3] = ["all", "namespace", "instrumentation"];

    /// Returns which pods are paused: one of [`Self::SCOPES`].
    pub fn scope(&self) -> &'static str {
        match self {
            Self::Release(_) | Self::Lease(_) => "all",
            Self::Namespace(_) => "namespace",
            Self::Instrumentation(_) => "instrumentation",
        }
    }

    /// Returns which pods are paused, for people.
    pub fn pods(&self) -> &'static str {
        match self {
            Self::Release(_) | Self::Lease(_) => "all pods",
            Self::Namespace(_) => "its pods",
            Self::Instrumentation(_) => "the pods that would use it",
        }
    }

    /// Returns the command of kubectl that pauses.
    pub fn pause_command(&self) -> String {
        format!("kubectl annotate {} {PAUSED_ANNOTATION}=true --overwrite", self.target())
    }

    /// Returns the command of kubectl that resumes.
    pub fn resume_command(&self) -> String {
        format!("kubectl annotate {} {PAUSED_ANNOTATION}-", self.target())
    }

    /// The object as kubectl names it. Other programs have kinds of the same names, so those of an Instrumentation
    /// and a Lease are complete.
    fn target(&self) -> String {
        match self {
            Self::Release(name) | Self::Namespace(name) => format!("namespace {name}"),
            Self::Lease(ObjectName { namespace, name }) => {
                format!("leases.coordination.k8s.io {name} -n {namespace}")
            }
            Self::Instrumentation(ObjectName { namespace, name }) => {
                format!("instrumentations.opentelemetry.io {name} -n {namespace}")
            }
        }
    }
}

impl fmt::Display for Pause {
    /// `kind namespace/name`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Release(name) | Self::Namespace(name) => write!(f, "Namespace {name}"),
            Self::Lease(name) => write!(f, "Lease {name}"),
            Self::Instrumentation(name) => write!(f, "Instrumentation {name}"),
        }
    }
}
