//! The kinds that are watched.

use otel_webhook_inject::limits::LimitKind;

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Instrumentations.
    Instrumentation,
    /// Namespaces, by their metadata.
    Namespace,
    /// What bounds the pods of a namespace.
    Limit(LimitKind),
}

impl Watched {
    /// What it is called.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Instrumentation => "Instrumentation",
            Self::Namespace => "Namespace",
            Self::Limit(kind) => kind.name(),
        }
    }
}
