//! What injection is for: telemetry that arrives. `make e2e-telemetry` runs it.
//!
//! ```text
//! API server <──> otel-webhook        pods as stored ──> kubelet ──> podman: services with real agents
//!                                                                      │ OTLP
//!                       cases <── files <── a real Collector <─────────┘
//! ```
//! One control plane serves all cases. Each case has a namespace of the cluster, and a Collector in
//! its own network, on the usual ports: only what the case starts can send to it.
//!
//! Images are made by `tests/telemetry/prepare`, under the names that injection has by default.

#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` makes a value, and a test reads better without the &"
)]

mod cases;
mod certificates;
mod collector;
mod measure;
mod received;
mod service;
mod stage;

/// The cluster with the webhook in it, of which the end-to-end tests use more.
#[path = "../e2e"]
#[allow(dead_code, reason = "shared with the end-to-end tests")]
mod e2e {
    pub mod cluster;
    pub mod program;
    pub mod registration;
    pub mod webhook;
}

use e2e::{cluster, program, registration, webhook};

use std::process::ExitCode;

use cluster::Cluster;
use otel_webhook_testkit::runner::{self, Shared};

/// Set by `make bench-agents`.
const MEASURE: &str = "OTEL_WEBHOOK_BENCH_AGENTS";

/// Runs the cases whose names contain one of the arguments; without arguments, all.
fn main() -> ExitCode {
    let after_failure =
        |cluster: &Cluster| format!("The end of the webhook's log:\n{}", cluster.webhook.log_tail());
    let groups = if std::env::var_os(MEASURE).is_some() { &[measure::CASES] } else { cases::GROUPS };
    runner::run(groups, &[], &Shared { start: Cluster::start, after_failure })
}
