//! Durations in flags: `90d`, `12h`, `30s`.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

/// Parses a duration greater than zero. A day has 24 hours.
///
/// # Errors
/// The message says which format is expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a duration such as 90d, 12h, 30s or 500ms".to_owned();
    let span: Span = text.parse().map_err(|_| expected())?;
    // Months and years have no fixed length.
    let signed = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| expected())?;
    let duration = Duration::try_from(signed).map_err(|_| expected())?;
    if duration.is_zero() {
        return Err("expected a duration greater than zero".to_owned());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_from_days_to_milliseconds_are_parsed() {
        for (text, seconds) in [("90d", 90 * 86400), ("12h", 43200), ("1h30m", 5400), ("30s", 30)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for text in ["", "90", "1y", "3mo", "-5s", "ninety days"] {
            let error = duration(text).expect_err(text);
            assert_eq!(error, "expected a duration such as 90d, 12h, 30s or 500ms", "{text}");
        }
        assert_eq!(duration("0s"), Err("expected a duration greater than zero".to_owned()));
    }
}
