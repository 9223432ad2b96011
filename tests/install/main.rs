//! The chart, installed by helm into a real cluster: what an administrator does,
//! and what is left when it is undone. `make e2e-install` runs it.
//!
//! ```text
//! Cluster (API server, controller manager, scheduler, kwok's node)
//!    ^ helm 3, helm 4      | AdmissionReviews
//!  cases ────────────────> Pod (the program, with what the Deployment of the chart says)
//! ```
//! kwok's pods are ready without running anything; one process next to the API
//! server stands for those of a Deployment, with the arguments, the environment,
//! the Secrets and the service account that the chart gives it.

mod cases;
mod cert_manager;
mod cluster;
mod helm;
mod pod;

use std::process::ExitCode;

use cluster::Cluster;
use otel_webhook_testkit::runner::{self, Shared};

/// How many clusters run side by side.
const CLUSTERS: usize = 2;

/// Runs the cases whose names contain one of the arguments; without arguments, all. With an earlier version, those of upgrades.
fn main() -> ExitCode {
    let cases = if cases::upgrade::earlier().is_some() { cases::UPGRADES } else { cases::ALL };
    runner::run_apart(CLUSTERS, cases, &Shared { start: Cluster::start, after_failure: Cluster::logs })
}
