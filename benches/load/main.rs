//! The whole server under load: the product and an empty handler on the same
//! stack, one after the other in every round, over keep-alive HTTP/1.1 and
//! TLS 1.3. `make bench-load` runs it.
//!
//! ```text
//! core 0: the product, or the empty handler     core 1: Sender ─ closed loop, open loop, handshakes
//!    ^ CPU time and memory from procfs                    v
//!                                    Figures: a table, and JSON
//! ```

mod empty;
mod handshakes;
mod measure;
mod pinned;
#[path = "../shared/stack.rs"]
mod stack;
#[path = "../shared/turns.rs"]
mod turns;

use std::{env, io, path::Path};

use mimalloc::MiMalloc;
use otel_webhook_testkit::load::figures::Figures;

/// The product, as it is released.
const PROGRAM: &str = env!("CARGO_BIN_EXE_otel-webhook");

/// The product's, for the empty handler.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> io::Result<()> {
    if env::args().nth(1).as_deref() == Some(empty::ARGUMENT) {
        empty::serve();
        return Ok(());
    }
    pinned::pin_this_process();
    let mut figures = Figures::new();
    if let Ok(other) = env::var("OTEL_WEBHOOK_BENCH_OTHER") {
        measure::against(&mut figures, &other)?;
        figures.finish("against", Path::new(env!("CARGO_TARGET_TMPDIR")));
        return Ok(());
    }
    if env::var("OTEL_WEBHOOK_BENCH_ONLY").is_ok_and(|only| only == "opt-in") {
        measure::opted_in(&mut figures)?;
        figures.finish("opt-in", Path::new(env!("CARGO_TARGET_TMPDIR")));
        return Ok(());
    }
    measure::all(&mut figures)?;
    figures.finish("load", Path::new(env!("CARGO_TARGET_TMPDIR")));
    Ok(())
}
