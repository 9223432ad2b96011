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

mod audit;
mod cases;
mod cluster;
mod control_plane;
mod created;
#[path = "../support/generator.rs"]
mod generator;
mod registration;
#[path = "../support/resources.rs"]
mod resources;
#[path = "../support/review.rs"]
mod review;
#[path = "../support/secret_volume.rs"]
mod secret_volume;
mod sidecar;
#[path = "../support/until.rs"]
mod until;
mod webhook;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use cases::Case;
use cluster::Cluster;

/// Runs the cases whose name contains the first argument; without one, all.
fn main() -> ExitCode {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let chosen: Vec<_> = cases::ALL.iter().filter(|(name, _)| name.contains(&filter)).collect();
    let passed = if chosen.is_empty() { 0 } else { run_all(&chosen) };
    let failed = chosen.len() - passed;
    println!("{passed} passed, {failed} failed");
    ExitCode::from(u8::from(failed > 0 || passed == 0))
}

/// Gives how many passed: none where there is no cluster to run them in.
fn run_all(chosen: &[&(&str, Case)]) -> usize {
    match catch_unwind(Cluster::start) {
        Ok(cluster) => chosen.iter().filter(|(name, case)| run(&cluster, name, *case)).count(),
        Err(panic) => {
            println!("FAILED to start a cluster: {}", message(&*panic));
            0
        }
    }
}

fn run(cluster: &Cluster, name: &str, case: Case) -> bool {
    match catch_unwind(AssertUnwindSafe(|| case(cluster))) {
        Ok(()) => {
            println!("ok {name}");
            true
        }
        Err(panic) => {
            println!("FAILED {name}: {}", message(&*panic));
            println!("The end of the webhook's log:\n{}", cluster.webhook.log_tail());
            false
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}
