//! The product next to a real API server with thousands of objects in it: how
//! soon it is ready, what it keeps, what it does while nothing happens and
//! while much does, and how soon a change is used. `make bench-scale` runs it.
//!
//! ```text
//! API server <──── load, updates ──── this program ──── reviews ────> the product
//!      <──────────────── watches, look-ups of owners ───────────────────┘
//! ```
//! Objects of the cluster: `OTEL_WEBHOOK_BENCH_SCALE`, as in `2000/1000/5000`
//! (namespaces, Instrumentations, ReplicaSets), which is the usual number. Besides,
//! `OTEL_WEBHOOK_BENCH_LIMIT_RANGES` LimitRanges, one a namespace, else none.

mod bursts;
mod growth;
mod measure;
mod objects;
#[allow(dead_code, reason = "shared with the bench of loads")]
#[path = "../shared/turns.rs"]
mod turns;

use std::{env, path::Path};

use objects::{Population, Scale};
use otel_webhook_testkit::{
    cluster::control_plane::ControlPlane,
    load::{figures::Figures, limit_ranges},
};

/// The product, as it is released.
const PROGRAM: &str = env!("CARGO_BIN_EXE_otel-webhook");

fn main() {
    // kube would take another provider than the product's, were none chosen.
    rustls::crypto::ring::default_provider().install_default().expect("nothing chose before");
    let asked = env::var("OTEL_WEBHOOK_BENCH_SCALE").unwrap_or_default();
    let mut scale = if asked.is_empty() { Scale::USUAL } else { Scale::parse(&asked) };
    scale.limit_ranges = limit_ranges::count(0);
    assert!(scale.limit_ranges <= scale.namespaces, "more LimitRanges than namespaces");
    let mut plane = ControlPlane::without_controllers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut figures = Figures::new();
    let measured = runtime.block_on(async {
        println!("filling the API server with {scale} and {} LimitRanges", scale.limit_ranges);
        let population = Population::create(&plane, scale).await;
        measure::all(&mut figures, &mut plane, &population).await
    });
    if measured.is_err() {
        figures.print(None);
    }
    measured.expect("every step works");
    figures.finish(&scale.figures(), Path::new(env!("CARGO_TARGET_TMPDIR")));
}
