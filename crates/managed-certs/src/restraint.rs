//! When to try again, and when to leave it to others for a while.

use std::time::{Duration, Instant};

/// How soon after a failure, and at most how late, the same is tried again.
const SOONEST: Duration = Duration::from_millis(500);
const LATEST: Duration = Duration::from_secs(30);

/// How often within a minute one bundle is put back into one configuration. After that it is left alone for
/// as long.
const MOST: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// Pauses after failures, longer with each.
#[derive(Debug, Default)]
pub struct Retry {
    pause: Duration,
    not_before: Option<Instant>,
    problem: Option<String>,
}

impl Retry {
    /// How long to wait; none when there is nothing to wait for.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        self.not_before.map(|time| time.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }

    /// Waits from now on. Whether the problem is another than the last time, and worth a line in the log.
    pub fn failed(&mut self, problem: &str, now: Instant) -> bool {
        self.pause = (self.pause * 2).clamp(SOONEST, LATEST);
        self.not_before = Some(now + self.pause);
        let is_new = self.problem.as_deref() != Some(problem);
        self.problem = Some(problem.to_owned());
        is_new
    }

    /// Waits no longer: what failed may have changed.
    pub fn at_once(&mut self) {
        self.not_before = None;
    }

    /// Forgets all failures. Whether there were any.
    pub fn succeeded(&mut self) -> bool {
        self.pause = Duration::ZERO;
        self.not_before = None;
        self.problem.take().is_some()
    }
}

/// Keeps replicas from changing a configuration for ever in turns with another tool.
///
/// Only how often the same bundle is put back counts: a rotation is no quarrel, however short lifetimes are.
#[derive(Debug, Default)]
pub struct Restraint {
    bundle: String,
    mended: Vec<Instant>,
}

impl Restraint {
    /// How long to leave the configuration alone before `bundle` is put into it; none when it can be done.
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

    /// Counts one time that the bundle was put in. Whether it was the last for a while.
    pub fn mended(&mut self, now: Instant) -> bool {
        self.mended.push(now);
        self.mended.len() == MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound_and_end_with_success() {
        let now = Instant::now();
        let mut retry = Retry::default();
        assert_eq!(retry.wait(now), None);
        assert!(retry.failed("no", now));
        assert_eq!(retry.wait(now), Some(SOONEST));
        assert!(!retry.failed("no", now), "said before");
        assert_eq!(retry.wait(now), Some(2 * SOONEST));
        assert!(retry.failed("not either", now));
        for _ in 0..10 {
            retry.failed("no", now);
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
    fn one_bundle_is_put_back_ten_times_within_a_minute_at_most() {
        let mut restraint = Restraint::default();
        let start = Instant::now();
        for second in 0..10 {
            let now = start + Duration::from_secs(second);
            assert_eq!(restraint.wait("a", now), None);
            assert_eq!(restraint.mended(now), second == 9);
        }
        let last = start + Duration::from_secs(9);
        assert_eq!(restraint.wait("a", last + Duration::from_secs(55)), Some(Duration::from_secs(5)));
        assert_eq!(restraint.wait("b", last), None, "a rotation is no quarrel");
    }

    #[test]
    fn a_bundle_is_put_back_again_after_a_minute() {
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
    fn what_is_put_back_now_and_then_is_never_left_alone() {
        let mut restraint = Restraint::default();
        let start = Instant::now();
        for time in 0..100 {
            let now = start + time * Duration::from_secs(7);
            assert_eq!(restraint.wait("a", now), None);
            assert!(!restraint.mended(now));
        }
    }
}
