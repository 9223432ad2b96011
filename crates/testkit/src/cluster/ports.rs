//! Ports for programs that are given one before they listen.

use std::iter;
use std::net::TcpListener;
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below those that the system hands out for outgoing connections: from 32768 on Linux, from 49152 elsewhere. A port of
/// that range that is free now may be the local end of somebody's connection when the program listens on it.
const RANGE: Range<u16> = 12_000..32_000;

/// How many were tried in this process.
static TRIED: AtomicU16 = AtomicU16::new(0);

/// Ports of loopback that nobody listens on, and that this process is not given again before all others were.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    [(); N].map(|()| iter::repeat_with(next).take(RANGE.len()).find(is_free).expect("a free port"))
}

/// The next one to try. Test runs side by side begin at different ports.
fn next() -> u16 {
    let size = u32::from(RANGE.end - RANGE.start);
    let start = process::id().wrapping_mul(1_009) % size;
    let offset = (start + u32::from(TRIED.fetch_add(1, Ordering::Relaxed))) % size;
    RANGE.start + u16::try_from(offset).expect("within the range")
}
