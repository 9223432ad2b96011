//! What is watched.

use crate::scope::Scope;
use otel_webhook_inject::reason::ObjectName;

/// What is watched.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The namespaces.
    pub scope: Scope,
    /// Whether nodes and the version of the API server are watched, for deliveries of `auto`.
    pub nodes: bool,
    /// The Lease of the release, for its annotation `otel-webhook/paused`.
    pub lease: Option<ObjectName>,
}
