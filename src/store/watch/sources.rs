//! What is watched.

use crate::scope::Scope;

/// What is watched.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The namespaces.
    pub scope: Scope,
    /// Whether nodes and the version of the API server are watched, for deliveries of `auto`.
    pub nodes: bool,
}
