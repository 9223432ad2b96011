//! When a kind of request may be made again after it failed.

use std::time::Duration;

use kube::runtime::{utils::Backoff, watcher::DefaultBackoff};
use tokio::time::Instant;

/// Waits longer after each failure, up to half a minute, with jitter, and as long as the API server asks for.
#[derive(Default)]
pub struct RequestBackoff {
    backoff: DefaultBackoff,
    until: Option<Instant>,
}

impl RequestBackoff {
    /// Returns whether a request may be made.
    pub fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    /// Returns whether the last request failed.
    pub fn has_failed(&self) -> bool {
        self.until.is_some()
    }

    /// Notes that a request failed.
    pub fn fail(&mut self, error: &kube::Error) {
        let asked = match error {
            kube::Error::Api(status) => {
                status.details.as_ref().map_or(0, |details| details.retry_after_seconds)
            }
            _ => 0,
        };
        let wait = self.backoff.next().unwrap_or_default().max(Duration::from_secs(asked.into()));
        self.until = Some(Instant::now() + wait);
    }

    /// Notes that a request was answered.
    pub fn succeed(&mut self) {
        self.backoff.reset();
        self.until = None;
    }
}
