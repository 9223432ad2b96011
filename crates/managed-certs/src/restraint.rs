//! When to retry, and when to stop changing a configuration for a while.

use std::time::{Duration, Instant};

/// The shortest and the longest delay of a retry.
const SOONEST: Duration = Duration::from_millis(500);
const LATEST: Duration = Duration::from_secs(30);

/// How often one CA bundle is written into one configuration within a minute. After that it is not changed
/// for a minute.
const MOST: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// Delays after failures, longer with each (exponential backoff).
#[derive(Debug, Default)]
pub struct Retry {
    pause: Duration,
    not_before: Option<Instant>,
    problem: Option<String>,
}

impl Retry {
    /// How long to wait; `None` if there is no delay.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        self.not_before.map(|time| time.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }

    /// Starts a delay. `jitter` is how much longer it is, from 0 to 1 times its length, so that replicas do not retry at the
    /// same time. Returns whether the problem differs from the last one, and should be logged.
    pub fn failed(&mut self, problem: &str, now: Instant, jitter: f64) -> bool {
        self.pause = (self.pause * 2).clamp(SOONEST, LATEST);
        self.not_before = Some(now + self.pause.mul_f64(1.0 + jitter.clamp(0.0, 1.0)));
        let is_new = self.problem.as_deref() != Some(problem);
        self.problem = Some(problem.to_owned());
        is_new
    }

    /// Ends the delay: what failed may have changed.
    pub fn at_once(&mut self) {
        self.not_before = None;
    }

    /// Resets all failures. Returns whether there were any.
    pub fn succeeded(&mut self) -> bool {
        self.pause = Duration::ZERO;
        self.not_before = None;
        self.problem.take().is_some()
    }
}

/// Prevents replicas and another tool from changing a configuration in turns forever.
///
/// Only writes of the same CA bundle are counted: a rotation is no conflict, however short lifetimes are.
#[derive(Debug, Default)]
pub struct Restraint {
    bundle: String,
    mended: Vec<Instant>,
}

impl Restraint {
    /// How long to wait before `bundle` is written into the configuration; `None` if it can be written now.
    pub fn wait(&mut self, bundle: &str, now: Instant) -> Option<Duration> {
        if self.bundle != bundle {
            bundle.clone_into(&mut self.bundle);
            self.mended.clear();
        }
        let passed = |mended: &Instant| now.saturating_duration_since(*mended);
        let pause = self.mended.last().map_or(Duration::ZERO, |last| MINUTE.saturating_sub(passed(last)));
        if self.mended.len() < MOST || pause.is_zero() {
            self.mended.retain(|mended| passed(mended) < MINUTE);
            return None;
        }
        Some(pause)
    }

    /// Counts a write of the CA bundle. Returns whether it was the last one for a while.
    pub fn mended(&mut self, now: Instant) -> bool {
        self.mended.push(now);
        self.mended.len() == MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_up_to_a_maximum_and_end_with_success() {
        let now = Instant::now();
        let mut retry = Retry::default();
        assert_eq!(retry.wait(now), None);
        assert!(retry.failed("no", now, 0.0));
        assert_eq!(retry.wait(now), Some(SOONEST));
        assert!(!retry.failed("no", now, 0.0), "logged before");
        assert_eq!(retry.wait(now), Some(2 * SOONEST));
        assert!(retry.failed("not either", now, 0.5));
        assert_eq!(retry.wait(now), Some(6 * SOONEST), "half longer than four times");
        for _ in 0..10 {
            retry.failed("no", now, 0.0);
        }
        assert_eq!(retry.wait(now), Some(LATEST));
        assert_eq!(retry.wait(now + LATEST), None);
        retry.at_once();
        assert_eq!(retry.wait(now), None);
        assert!(retry.succeeded());
        assert!(!retry.succeeded());
        assert_eq!(retry.wait(now), None);
    }

    #[test]
    fn one_bundle_is_written_at_most_ten_times_within_a_minute() {
        let mut restraint = Restraint::default();
        let start = Instant::now();
        for second in 0..10 {
            let now = start + Duration::from_secs(second);
            assert_eq!(restraint.wait("a", now), None);
            assert_eq!(restraint.mended(now), second == 9);
        }
        let last = start + Duration::from_secs(9);
        assert_eq!(restraint.wait("a", last + Duration::from_secs(55)), Some(Duration::from_secs(5)));
        assert_eq!(restraint.wait("b", last), None, "a rotation is no conflict");
    }

    #[test]
    fn a_bundle_is_written_again_after_a_minute() {
        let mut restraint = Restraint::default();
        let start = Instant::now();
        assert_eq!(restraint.wait("a", start), None);
        for _ in 0..10 {
            restraint.mended(start);
        }
        assert_eq!(restraint.wait("a", start + MINUTE), None);
        assert!(!restraint.mended(start + MINUTE), "counted anew");
    }

    #[test]
    fn rare_writes_are_never_delayed() {
        let mut restraint = Restraint::default();
        let start = Instant::now();
        for time in 0..100 {
            let now = start + time * Duration::from_secs(7);
            assert_eq!(restraint.wait("a", now), None);
            assert!(!restraint.mended(now));
        }
    }
}
