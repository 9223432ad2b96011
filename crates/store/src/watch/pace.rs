//! When to publish snapshots.

use std::time::Duration;

use tokio::time::Instant;

/// The minimum interval of publishing the usage of ResourceQuotas. It changes with every pod that is created or
/// deleted, and the cost of a snapshot grows with the number of namespaces.
const USAGE_PERIOD: Duration = Duration::from_millis(100);

/// The relevance of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum News {
    /// Nothing has to be published.
    Nothing,
    /// The usage of a ResourceQuota.
    Usage,
    /// Any other change, which is published immediately.
    Change,
}

/// The time of the last snapshot, and whether a change waits.
#[derive(Debug, Default)]
pub struct Pace {
    last: Option<Instant>,
    until: Option<Instant>,
}

impl News {
    /// Returns the relevance of an object that has changed, or not.
    pub fn of(is_changed: bool) -> Self {
        if is_changed { Self::Change } else { Self::Nothing }
    }
}

impl Pace {
    /// Returns when a waiting change has to be published; none if none waits.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Returns whether to publish now, with this change.
    pub fn is_due(&mut self, news: News, now: Instant) -> bool {
        if news == News::Usage && self.until.is_none() {
            self.until = Some(self.last.map_or(now, |last| last + USAGE_PERIOD));
        }
        let is_due = news == News::Change || self.until.is_some_and(|until| until <= now);
        if is_due {
            *self = Self { last: Some(now), until: None };
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_published_immediately_or_once_per_interval() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        assert!(!pace.is_due(News::Nothing, at(0)));
        assert!(pace.is_due(News::Usage, at(0)), "the first");
        for milliseconds in 1..100 {
            assert!(!pace.is_due(News::Usage, at(milliseconds)), "{milliseconds} ms");
        }
        assert_eq!(pace.until(), Some(at(100)));
        assert!(pace.is_due(News::Nothing, at(100)), "a waiting change is published without a further one");
        assert_eq!(pace.until(), None);
        assert!(!pace.is_due(News::Nothing, at(500)) && pace.is_due(News::Usage, at(500)), "after a rest");
    }

    #[test]
    fn other_changes_are_published_immediately_with_waiting_ones() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        assert!(pace.is_due(News::Change, at(0)) && pace.is_due(News::Change, at(1)));
        assert!(!pace.is_due(News::Usage, at(2)) && pace.is_due(News::Change, at(3)));
        assert_eq!(pace.until(), None);
    }
}
