//! Waiting for what another process does.

use std::thread;
use std::time::{Duration, Instant};

/// After this long it hangs. A bound on speed would fail on a machine that has other work.
pub const LIMIT: Duration = Duration::from_secs(600);

const PAUSE: Duration = Duration::from_millis(50);

/// Polls until `probe` has an answer, and panics naming `what` when it never has one.
pub fn until<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    poll(probe).unwrap_or_else(|| panic!("not within {LIMIT:?}: {what}"))
}

/// Polls until `probe` has an answer or the limit is over.
pub fn poll<T>(mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let late = Instant::now() >= deadline;
        match probe() {
            None if !late => thread::sleep(PAUSE),
            answer => return answer,
        }
    }
}
