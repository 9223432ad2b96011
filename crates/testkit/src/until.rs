//! Waiting for what another process does.

use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);

/// Polls until `probe` has an answer, and panics naming `what` when `limit` is over.
pub fn until<T>(what: &str, limit: Duration, probe: impl FnMut() -> Option<T>) -> T {
    poll(limit, probe).unwrap_or_else(|| panic!("not within {limit:?}: {what}"))
}

/// Polls until `probe` has an answer or `limit` is over.
pub fn poll<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        let late = Instant::now() >= deadline;
        match probe() {
            None if !late => thread::sleep(PAUSE),
            answer => return answer,
        }
    }
}
