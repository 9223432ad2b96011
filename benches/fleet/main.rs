//! What the controller costs in a cluster of many pods: its memory, how long it counts, what it asks the API server
//! for while nothing happens, and what it writes after a change.
//!
//! `OTEL_WEBHOOK_BENCH_FLEET` has other numbers than 50,000 pods, 5,000 workloads and 1,000 Instrumentations, as in
//! `5000/500/100`.

mod measure;
mod objects;

use std::{env, path::Path};

use objects::{Fleet, Scale};
use otel_webhook_testkit::{cluster::control_plane::ControlPlane, load::figures::Figures};

/// The program that is measured.
const PROGRAM: &str = env!("CARGO_BIN_EXE_otel-webhook");

fn main() {
    // kube would take another provider than the product's, were none chosen.
    rustls::crypto::ring::default_provider().install_default().expect("nothing chose before");
    let scale = env::var("OTEL_WEBHOOK_BENCH_FLEET").ok().filter(|text| !text.is_empty());
    let scale = scale.map_or(Scale::USUAL, |text| Scale::parse(&text));
    let plane = ControlPlane::without_controllers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut figures = Figures::new();
    runtime.block_on(async {
        println!("filling the API server with {scale}");
        let fleet = Fleet::create(&plane, scale).await;
        measure::all(&mut figures, &plane, &fleet).await;
    });
    figures.finish(&scale.figures(), Path::new(env!("CARGO_TARGET_TMPDIR")));
}
