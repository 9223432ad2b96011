//! When readers are shown what was taken in.

use std::time::Duration;

use tokio::time::Instant;

/// How often changes of what quotas say is used are shown. They come with every
/// pod that is created or ends, and each publication costs all namespaces.
const USAGE_PERIOD: Duration = Duration::from_millis(100);

/// How much a change matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum News {
    /// Nothing is to be shown.
    Nothing,
    /// More or less of a quota is used.
    Usage,
    /// Anything else, which is shown at once.
    Change,
}

/// When the last publication was, and when the next is due.
#[derive(Debug, Default)]
pub struct Pace {
    last: Option<Instant>,
    until: Option<Instant>,
}

impl News {
    /// Of an object that was changed, or not.
    pub fn of(is_changed: bool) -> Self {
        if is_changed { Self::Change } else { Self::Nothing }
    }
}

impl Pace {
    /// When something has to be shown that waits; none where nothing does.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Whether to publish now, with these news.
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
    fn usage_is_shown_at_once_after_a_rest_and_else_once_a_period() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        assert!(!pace.is_due(News::Nothing, at(0)));
        assert!(pace.is_due(News::Usage, at(0)), "the first");
        for milliseconds in 1..100 {
            assert!(!pace.is_due(News::Usage, at(milliseconds)), "{milliseconds} ms");
        }
        assert_eq!(pace.until(), Some(at(100)));
        assert!(pace.is_due(News::Nothing, at(100)), "what waited is shown, also without more of it");
        assert_eq!(pace.until(), None);
        assert!(!pace.is_due(News::Nothing, at(500)) && pace.is_due(News::Usage, at(500)), "after a rest");
    }

    #[test]
    fn other_changes_are_shown_at_once_and_what_waits_with_them() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        assert!(pace.is_due(News::Change, at(0)) && pace.is_due(News::Change, at(1)));
        assert!(!pace.is_due(News::Usage, at(2)) && pace.is_due(News::Change, at(3)));
        assert_eq!(pace.until(), None);
    }
}
