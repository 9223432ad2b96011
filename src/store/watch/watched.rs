//! The kinds that are watched.

use otel_webhook_inject::limits::LimitKind;

/// A watched kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Instrumentations.
    Instrumentation,
    /// Namespaces, by their metadata.
    Namespace,
    /// LimitRanges, ResourceQuotas or ServiceAccounts.
    Limit(LimitKind),
}

impl Watched {
    /// Returns the name of the kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Instrumentation => "Instrumentation",
            Self::Namespace => "Namespace",
            Self::Limit(kind) => kind.name(),
        }
    }
}
