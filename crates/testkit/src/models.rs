//! What injection must not change, and some rules of Kubernetes, computed a second time.
//!
//! Written from the rules of Kubernetes and on plain JSON. The end-to-end tests compare these
//! models with a real API server.

pub mod amounts;
pub mod invariants;
pub mod sanity;
pub mod service_account;
pub mod users;
pub mod validity;
