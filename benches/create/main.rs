//! What a user feels: the time that the creation of a pod takes, on a real API server. `make bench-create` runs it.
//!
//! ```text
//! clients ──pods──> API server ──reviews──> the hook that allows everything, or the product
//!                        └──> etcd
//! ```
//! Each way to create a pod has its own namespaces and registration, so that the ways take turns within a
//! run. `OTEL_WEBHOOK_BENCH_ROUNDS` is the number of turns of each.

mod client;
mod cluster;
mod hook;
mod measure;
mod restart;
#[path = "../shared/stack.rs"]
mod stack;
mod table;
mod ways;

use std::{env, path::Path};

use cluster::Cluster;
use mimalloc::MiMalloc;
use otel_webhook_testkit::load::figures::Figures;

/// The product, as it is released.
const PROGRAM: &str = env!("CARGO_BIN_EXE_otel-webhook");

/// Turns of each way.
const ROUNDS: usize = 20;

/// The product's, for the hook.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() {
    let mut arguments = env::args().skip(1);
    if arguments.next().as_deref() == Some(hook::ARGUMENT) {
        hook::serve(Path::new(&arguments.next().expect("a folder")));
        return;
    }
    // kube would take another provider than the product's, were none chosen.
    rustls::crypto::ring::default_provider().install_default().expect("nothing chose before");
    let asked = env::var("OTEL_WEBHOOK_BENCH_ROUNDS").unwrap_or_default();
    let rounds = if asked.is_empty() { ROUNDS } else { asked.parse().expect("a number of rounds") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut figures = Figures::new();
    runtime.block_on(async {
        let mut cluster = Cluster::start().await;
        measure::all(&mut figures, &cluster, rounds).await;
        restart::all(&mut figures, &mut cluster).await;
    });
    figures.finish("create", Path::new(env!("CARGO_TARGET_TMPDIR")));
}
