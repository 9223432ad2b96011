//! The real program before a real API server: what users see, with the reason
//! that they are given. `make e2e` runs it.
//!
//! ```text
//! ControlPlane (etcd, API server, controller manager)
//!    ^ kubectl            | AdmissionReviews
//!  cases ─────────────> Webhook (the program, `serve`, as its own service account)
//! ```
//! One control plane serves all cases, which run in groups side by side. Each
//! case has its own namespaces, and what it does to the webhook or its
//! registration is undone when it ends, however it ends.

mod audit;
mod cases;
mod cluster;
mod controller;
mod program;
mod registration;
mod replicas;
mod sidecar;
mod webhook;

use std::process::ExitCode;

use cluster::Cluster;
use otel_webhook_testkit::runner::{self, Shared};

/// Runs the cases whose names contain one of the arguments; without arguments, all.
fn main() -> ExitCode {
    let after_failure =
        |cluster: &Cluster| format!("The end of the webhook's log:\n{}", cluster.webhook.log_tail());
    runner::run(cases::GROUPS, cases::LAST, &Shared { start: Cluster::start, after_failure })
}
