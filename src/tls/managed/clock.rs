//! The time by which certificates are dated.

use std::time::Duration;

use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use tracing::warn;

/// Smaller differences are left alone: certificates are backdated by more, and lifetimes are longer.
const TOLERATED: Duration = Duration::from_secs(60);

/// The clock of this machine, unless it is far from the API server's: what is issued by a clock that is
/// wrong would be refused by everybody else, and replicas would disagree on what is due.
#[derive(Debug, Default)]
pub struct Clock {
    ahead: SignedDuration,
}

impl Clock {
    /// The time now.
    pub fn now(&self) -> Timestamp {
        Timestamp::now().saturating_sub(self.ahead).unwrap_or_default()
    }

    /// Compares this machine's clock to an API server's, by the header `Date` of its answer.
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
                "the clock of this machine is not the API server's; certificates are dated by the API server's"
            );
        }
        self.ahead = ahead;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_far_from_the_api_servers_is_not_used() {
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
    fn the_date_of_an_answer_is_understood() {
        let mut clock = Clock::default();
        clock.hear("nonsense");
        assert_eq!(clock.ahead, SignedDuration::ZERO);
        clock.hear("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(clock.now().to_string()[..17], *"1994-11-06T08:49:");
    }
}
