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
#[path = "../support/figures.rs"]
mod figures;
mod handshakes;
#[path = "../support/limit_ranges.rs"]
mod limit_ranges;
mod link;
#[path = "../support/material.rs"]
mod material;
mod measure;
mod pinned;
mod sender;
mod server;
mod trust;

use std::{env, io};

use figures::Figures;
use mimalloc::MiMalloc;

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
    measure::all(&mut figures)?;
    figures.finish("load");
    Ok(())
}
