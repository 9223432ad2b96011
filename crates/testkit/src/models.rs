//! What Kubernetes accepts, computed a second time, and what injection must not change.
//!
//! Written from the rules of Kubernetes and on plain JSON. The end-to-end tests compare these
//! models with a real API server.

pub mod amounts;
pub mod invariants;
pub mod namespace;
pub mod quota;
pub mod sanity;
pub mod service_account;
pub mod sidecar;
pub mod users;
pub mod validity;
