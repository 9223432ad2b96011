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

/// The page size of lists of objects that the users of a namespace create. Each may have 1.5 MiB, and the client
/// needs some times the size of a page while it receives it.
const SMALL_PAGE: u32 = 8;

/// The page size of other lists.
const PAGE: u32 = 100;

impl Watched {
    /// Returns the page size of lists.
    pub fn page_size(self) -> u32 {
        match self {
            Self::Instrumentation | Self::Limit(LimitKind::ServiceAccount) => SMALL_PAGE,
            Self::Namespace | Self::Limit(LimitKind::Range | LimitKind::Quota) => PAGE,
        }
    }

    /// Returns the name of the kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Instrumentation => "Instrumentation",
            Self::Namespace => "Namespace",
            Self::Limit(kind) => kind.name(),
        }
    }
}
