//! The annotation that pauses injection.

/// The annotation of an Instrumentation, a namespace, or the namespace or the Lease of the release that pauses
/// injection into new pods.
pub const PAUSED_ANNOTATION: &str = "otel-webhook/paused";

/// Returns whether a value of the annotation pauses: only `true` does, in any case.
pub fn is_paused(value: Option<&str>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// What to do about a value that pauses nothing.
pub const UNCLEAR_REMEDY: &str = "set it to \"true\" to pause injection, or remove it";

/// Returns whether a value is neither empty, `true` nor `false`. It pauses nothing, which may not be what was meant.
pub fn is_unclear(value: &str) -> bool {
    !value.is_empty() && !["true", "false"].iter().any(|clear| value.eq_ignore_ascii_case(clear))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_true_pauses_and_another_word_is_unclear() {
        for (value, pauses, unclear) in [
            ("true", true, false),
            ("True", true, false),
            ("TRUE", true, false),
            ("false", false, false),
            ("False", false, false),
            ("", false, false),
            ("yes", false, true),
            ("1", false, true),
            (" true", false, true),
        ] {
            assert_eq!((is_paused(Some(value)), is_unclear(value)), (pauses, unclear), "{value:?}");
        }
        assert!(!is_paused(None));
    }
}
