//! How long a review may take.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;

/// The timeout of a webhook configuration that sets none.
const USUAL: Duration = Duration::from_secs(10);

/// The longest timeout that a webhook configuration may set.
const LONGEST: Duration = Duration::from_secs(30);

/// The margin is a tenth of the timeout, and at least this.
const LEAST_MARGIN: Duration = Duration::from_millis(100);

/// The time until which a review is answered.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// When it is over.
    pub at: Instant,
    /// How long that is from the headers of the request.
    pub patience: Duration,
}

impl Deadline {
    /// Returns the deadline of a request that arrives now, with this query.
    pub fn of(query: Option<&str>) -> Self {
        let patience = patience(query);
        Self { at: Instant::now() + patience, patience }
    }
}

/// Returns how long a review may take. The API server sends its timeout as a Go duration (`timeout=10s`); the margin
/// is for what happens before the headers arrive, and for the way back.
fn patience(query: Option<&str>) -> Duration {
    let given = query.into_iter().flat_map(|query| query.split('&'));
    let given = given.filter_map(|pair| pair.strip_prefix("timeout=")).find_map(go_duration);
    let timeout = given.unwrap_or(USUAL).min(LONGEST);
    timeout.saturating_sub((timeout / 10).max(LEAST_MARGIN))
}

/// Returns a positive duration; zero means no timeout. Go's format is a part of the one that jiff calls friendly.
fn go_duration(text: &str) -> Option<Duration> {
    let duration: SignedDuration = text.parse().ok()?;
    Duration::try_from(duration).ok().filter(|duration| !duration.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_is_the_timeout_less_a_margin() {
        for (query, milliseconds) in [
            ("timeout=10s", 9_000),
            ("timeout=30s", 27_000),
            ("dryRun=true&timeout=5s", 4_500),
            ("timeout=1s&a=b", 900),
            ("timeout=500ms", 400),
            ("timeout=1.5s", 1_350),
            ("timeout=100ms", 0),
            // More than a webhook configuration may set.
            ("timeout=1m0s", 27_000),
            ("timeout=1h2m3s", 27_000),
        ] {
            assert_eq!(patience(Some(query)), Duration::from_millis(milliseconds), "{query}");
        }
    }

    #[test]
    fn without_a_valid_timeout_it_is_that_of_an_ordinary_configuration() {
        for query in
            ["", "a=b", "timeout", "timeout=", "timeout=0s", "timeout=-5s", "timeout=10", "timeout=soon"]
        {
            assert_eq!(patience(Some(query)), Duration::from_secs(9), "{query}");
        }
        assert_eq!(patience(None), Duration::from_secs(9));
    }
}
