//! The time for the validity of certificates.

use std::time::Duration;

use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use tracing::warn;

/// Smaller differences are ignored: certificates are backdated by more, and lifetimes are longer.
const TOLERATED: Duration = Duration::from_secs(60);

/// The clock of this host, unless it differs much from the API server's: clients would reject certificates with wrong
/// times, and replicas would disagree about when to rotate.
#[derive(Debug, Default)]
pub struct Clock {
    ahead: SignedDuration,
}

impl Clock {
    /// The time now.
    pub fn now(&self) -> Timestamp {
        Timestamp::now().saturating_sub(self.ahead).unwrap_or_default()
    }

    /// Compares the clock of this host with the API server's, by the header `Date` of a response.
    pub fn hear(&mut self, date: &str) {
        if let Ok(said) = rfc2822::parse(date) {
            self.compare(said.timestamp(), Timestamp::now());
        }
    }

    fn compare(&mut self, said: Timestamp, own: Timestamp) {
        let difference = own.duration_since(said);
        let ahead = if difference.unsigned_abs() > TOLERATED { difference } else { SignedDuration::ZERO };
        if (ahead - self.ahead).unsigned_abs() > TOLERATED {
            warn!(
                ahead = %ahead,
                "the clock of this host differs from the API server's; certificates use the API server's time"
            );
        }
        self.ahead = ahead;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_differs_much_is_not_used() {
        let mut clock = Clock::default();
        let own = Timestamp::now();
        for seconds in [-3600, 7200] {
            clock.compare(own - SignedDuration::from_secs(seconds), own);
            assert_eq!(clock.ahead, SignedDuration::from_secs(seconds));
        }
        clock.compare(own - SignedDuration::from_secs(30), own);
        assert_eq!(clock.ahead, SignedDuration::ZERO);
    }

    #[test]
    fn the_date_header_is_parsed() {
        let mut clock = Clock::default();
        clock.hear("nonsense");
        assert_eq!(clock.ahead, SignedDuration::ZERO);
        clock.hear("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(clock.now().to_string()[..17], *"1994-11-06T08:49:");
    }
}
