//! The product on a real node: pods that kubelet starts, with the real agents, and what happens to them when
//! containers, nodes and the webhook end. `make e2e-node` runs it.
//!
//! ```text
//! unshare ── this program ── Node (API server, containerd, kubelet, kube-proxy, CoreDNS)
//!              cases ──────────^ kubectl, helm: the chart with the image of the Dockerfile
//! ```
//! One node serves all cases. Those that disturb the whole node come last.
//!
//! Images are made by `tests/node/prepare`.

#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` makes a value, and a test reads better without the &"
)]

mod backend;
mod cases;
mod cluster;
mod harm;
mod measure;
mod workload;

/// What a Collector writes, as the tests of telemetry read it.
#[path = "../telemetry/received.rs"]
#[allow(dead_code, reason = "shared with the tests of telemetry")]
mod received;
/// The services of the tests of telemetry.
#[path = "../telemetry/service.rs"]
#[allow(dead_code, reason = "shared with the tests of telemetry")]
mod service;

use std::path::Path;
use std::process::ExitCode;

use cluster::Cluster;
use otel_webhook_testkit::cluster::namespaces;
use otel_webhook_testkit::containers::podman;
use otel_webhook_testkit::runner::{self, Shared};

/// Set by `make bench-node`.
const MEASURE: &str = "OTEL_WEBHOOK_BENCH_NODE";

/// Runs the cases whose names contain one of the arguments; without arguments, all.
fn main() -> ExitCode {
    let shared = Shared { start: Cluster::start, after_failure: Cluster::logs };
    namespaces::apart(save_images, || match std::env::var_os(MEASURE) {
        Some(_) => runner::run(&[measure::CASES], &[], &shared),
        None => runner::run(cases::GROUPS, cases::LAST, &shared),
    })
}

/// Builds the image that the Dockerfile describes, by the name that the chart has for it.
fn save_images(folder: &Path) {
    podman::build_product(cluster::IMAGE);
    podman::save(cluster::IMAGE, &folder.join(cluster::ARCHIVE));
}
