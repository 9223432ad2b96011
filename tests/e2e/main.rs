//! The real program before a real API server: what users see, with the reason
//! that they are given. `make e2e` runs it.
//!
//! ```text
//! ControlPlane (etcd, API server, controller manager)
//!    ^ kubectl            | AdmissionReviews
//!  cases ─────────────> Webhook (the program, `serve`, as its own service account)
//! ```
//! One control plane serves all cases, one after the other. Each case has
//! namespaces of its own, and what it does to the webhook or its registration
//! is undone when it ends, however it ends.

mod admin;
mod audit;
#[path = "../support/bounded.rs"]
mod bounded;
#[path = "../support/bounded_pod.rs"]
mod bounded_pod;
#[path = "../support/broken.rs"]
mod broken_fields;
mod cases;
mod cluster;
mod control_plane;
mod created;
#[path = "../support/generator.rs"]
mod generator;
#[path = "../support/namespace_model.rs"]
mod namespace_model;
mod program;
#[path = "../support/quota_model.rs"]
mod quota_model;
mod registration;
mod replicas;
#[path = "../support/resources.rs"]
mod resources;
#[path = "../support/review.rs"]
mod review;
#[path = "../support/runner.rs"]
mod runner;
#[path = "../support/secret_volume.rs"]
mod secret_volume;
mod sidecar;
#[path = "../support/sidecar_model.rs"]
mod sidecar_model;
mod traffic;
#[path = "../support/until.rs"]
mod until;
mod webhook;

use std::process::ExitCode;

use cluster::Cluster;

/// Runs the cases whose name contains the first argument; without one, all.
fn main() -> ExitCode {
    runner::run(cases::ALL, Cluster::start, |cluster| {
        format!("The end of the webhook's log:\n{}", cluster.webhook.log_tail())
    })
}
