//! The kinds that are watched.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Resource;
use serde_json::{Value, json, value::RawValue};

use crate::reduced::Whole;
use otel_webhook_api::Version;
use otel_webhook_inject::limits::LimitKind;

/// A watched kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Instrumentations, in this version.
    Instrumentation(Version),
    /// Namespaces, by their metadata.
    Namespace,
    /// Nodes, by labels and versions.
    Node,
    /// The Lease of the release, by its annotation.
    Lease,
    /// LimitRanges, ResourceQuotas or ServiceAccounts.
    Limit(LimitKind),
}

impl Watched {
    /// Returns the kinds that the webhook can do without, if it is one of them.
    pub fn optional(self) -> Option<&'static str> {
        match self {
            Self::Instrumentation(_) | Self::Namespace => None,
            Self::Node => Some("nodes"),
            Self::Lease => Some("pauses by the annotation of the Lease"),
            Self::Limit(_) => Some("LimitRanges, ResourceQuotas and ServiceAccounts"),
        }
    }

    /// Returns the name of the kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Instrumentation(_) => "Instrumentation",
            Self::Namespace => "Namespace",
            Self::Node => "Node",
            Self::Lease => "Lease",
            Self::Limit(kind) => kind.name(),
        }
    }

    /// Returns an object as a document, with its type, which lists omit, and without the specification unless
    /// `with_spec`.
    pub fn document(self, object: &Whole, with_spec: bool) -> Value {
        let api_version = match self {
            Self::Instrumentation(version) => version.api_version().into(),
            Self::Lease => Lease::api_version(&()),
            Self::Namespace | Self::Node | Self::Limit(_) => "v1".into(),
        };
        let mut document =
            json!({"apiVersion": api_version, "kind": self.kind(), "metadata": object.metadata});
        let spec = object.spec.as_ref().filter(|_| with_spec);
        for (field, raw) in [("spec", spec), ("status", object.status.as_ref())] {
            if let Some(raw) = raw {
                document[field] = parsed(raw);
            }
        }
        document
    }
}

/// JSON that is nested too deep is not valid as the field: the error takes its place.
fn parsed(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_else(|error| error.to_string().into())
}
