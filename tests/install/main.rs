//! The chart, installed by helm into a real cluster: what an administrator does,
//! and what is left when it is undone. `make e2e-install` runs it.
//!
//! ```text
//! Cluster (API server, controller manager, scheduler, kwok's node)
//!    ^ helm 3, helm 4      | AdmissionReviews
//!  cases ────────────────> Pod (the program, with what the Deployment of the chart says)
//! ```
//! kwok's pods are ready without running anything; one process beside the API
//! server stands for them, with the arguments, the environment, the Secrets and
//! the service account of the chart's own Deployment.

mod cases;
mod cert_manager;
mod cluster;
#[path = "../e2e/control_plane.rs"]
#[allow(dead_code, reason = "shared with the other end-to-end tests, which ask it for more")]
mod control_plane;
#[path = "../e2e/created.rs"]
#[allow(dead_code, reason = "shared with the other end-to-end tests, which look at more of a pod")]
mod created;
mod helm;
mod pod;
#[path = "../e2e/program.rs"]
#[allow(dead_code, reason = "shared with the other end-to-end tests, one of which kills it")]
mod program;
#[path = "../support/runner.rs"]
mod runner;
#[path = "../support/secret_volume.rs"]
#[allow(dead_code, reason = "shared with tests that make their certificates themselves")]
mod secret_volume;
mod traffic;
#[path = "../support/until.rs"]
mod until;

use std::process::ExitCode;

use cluster::Cluster;

/// Runs the cases whose name contains the first argument; without one, all.
fn main() -> ExitCode {
    runner::run(cases::ALL, Cluster::start, Cluster::logs)
}
