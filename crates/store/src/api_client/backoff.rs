//! When a kind of request may be made again after it failed.

use std::time::Duration;

use kube::runtime::{utils::Backoff, watcher::DefaultBackoff};
use tokio::time::Instant;

/// Waits longer after each failure, up to half a minute, with jitter, and as long as the API server asks for.
#[derive(Default)]
pub struct RequestBackoff {
    backoff: DefaultBackoff,
    until: Option<Instant>,
    longest: Option<Duration>,
}

impl RequestBackoff {
    /// Returns one that does not wait for longer than this, unless the API server asks for it.
    pub fn up_to(longest: Duration) -> Self {
        Self { longest: Some(longest), ..Self::default() }
    }

    /// Returns whether a request may be made.
    pub fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    /// Returns whether a request may be made. After a failure, it may be made once: another one has to wait, whether
    /// the first is answered or not.
    pub fn claim(&mut self) -> bool {
        let is_over = self.is_over();
        if is_over && self.has_failed() {
            self.rest();
        }
        is_over
    }

    /// Returns whether the last request failed.
    pub fn has_failed(&self) -> bool {
        self.until.is_some()
    }

    /// Notes that a request failed.
    pub fn fail(&mut self, error: &kube::Error) {
        self.rest();
        if let kube::Error::Api(status) = error {
            let asked = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
            self.until = self.until.max(Some(Instant::now() + Duration::from_secs(asked.into())));
        }
    }

    /// Notes that a request was not answered.
    pub fn rest(&mut self) {
        let wait = self.backoff.next().unwrap_or_default();
        self.until = Some(Instant::now() + self.longest.map_or(wait, |longest| wait.min(longest)));
    }

    /// Notes that a request was answered.
    pub fn succeed(&mut self) {
        self.backoff.reset();
        self.until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_shows_whether_others_may_follow() {
        let mut backoff = RequestBackoff::up_to(Duration::ZERO);
        assert!(backoff.claim() && backoff.claim(), "none has failed");
        backoff.rest();
        assert!(backoff.has_failed());
        backoff.longest = Some(Duration::from_secs(60));
        assert!(backoff.claim(), "the wait is over");
        assert!(!backoff.claim(), "until that one is answered, or another wait is over");
        backoff.succeed();
        assert!(backoff.claim() && backoff.claim());
    }

    #[test]
    fn the_api_server_may_ask_for_a_longer_wait() {
        let mut backoff = RequestBackoff::up_to(Duration::ZERO);
        let status = |asked: u32| {
            let text = serde_json::json!({"status": "Failure", "code": 429, "details": {"retryAfterSeconds": asked}});
            kube::Error::Api(serde_json::from_value(text).expect("a status"))
        };
        backoff.fail(&status(0));
        assert!(backoff.is_over());
        backoff.fail(&status(60));
        assert!(!backoff.is_over());
    }
}
