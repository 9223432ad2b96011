//! The kinds that are watched.

use otel_webhook_inject::limits::LimitKind;

/// A watched kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Instrumentations.
    Instrumentation,
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
            Self::Instrumentation | Self::Namespace => None,
            Self::Node => Some("nodes"),
            Self::Lease => Some("pauses by the annotation of the Lease"),
            Self::Limit(_) => Some("LimitRanges, ResourceQuotas and ServiceAccounts"),
        }
    }

    /// Returns the name of the kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Instrumentation => "Instrumentation",
            Self::Namespace => "Namespace",
            Self::Node => "Node",
            Self::Lease => "Lease",
            Self::Limit(kind) => kind.name(),
        }
    }
}
