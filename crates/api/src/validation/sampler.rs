//! The sampler's argument.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{
    text,
    verdict::{Cause, Verdict},
};
use crate::crd::{INTERVAL, RATIO};

const ARGUMENT: &str = "spec.sampler.argument";

/// The keys of the argument of a Jaeger sampler.
const JAEGER_KEYS: [&str; 3] = ["endpoint", "pollingIntervalMs", "initialSamplingRate"];

static DECIMAL: LazyLock<Regex> = LazyLock::new(|| Regex::new(RATIO).expect("a test compiles it"));
static WHOLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(INTERVAL).expect("a test compiles it"));

/// Checks what the schema cannot express about a sampler.
pub fn check(verdict: &mut Verdict, sampler: &Value) {
    let argument = sampler["argument"].as_str().unwrap_or_default();
    match sampler["type"].as_str() {
        // Without an argument nothing is lost: each agent uses its own default.
        None if sampler["type"].is_null() && !argument.is_empty() => {
            let message = "is not set; each agent uses its own default, and the argument is ignored";
            verdict.warn("sampler-type-not-set", "spec.sampler.type", message);
        }
        Some("traceidratio" | "parentbased_traceidratio") if !is_ratio(argument) && !argument.is_empty() => {
            let shown = text::quoted(argument);
            let message = format!("{shown} is not a number from 0 to 1; valid: such as \"0.25\"");
            verdict.reject(Cause::Invalid, ARGUMENT, message);
        }
        Some("jaeger_remote" | "parentbased_jaeger_remote") => check_jaeger(verdict, argument),
        _ => {}
    }
}

fn is_ratio(text: &str) -> bool {
    let number = text.parse().ok().filter(|_| DECIMAL.is_match(text));
    number.is_some_and(|number: f64| (0.0..=1.0).contains(&number))
}

fn check_jaeger(verdict: &mut Verdict, argument: &str) {
    let mut has_endpoint = false;
    for pair in argument.split(',').filter(|_| !argument.is_empty()) {
        let Some((key, value)) = pair.split_once('=') else {
            let shown = text::quoted(pair);
            let message = format!(
                "{shown} is not key=value; valid: comma-separated pairs, such as \"endpoint=http://jaeger:14250\""
            );
            verdict.reject(Cause::Invalid, ARGUMENT, message);
            continue;
        };
        has_endpoint |= key == "endpoint";
        check_pair(verdict, key, value);
    }
    if !has_endpoint {
        let message = "has no endpoint; the agent uses localhost, where a pod has no Jaeger";
        verdict.warn("jaeger-without-endpoint", ARGUMENT, message);
    }
}

fn check_pair(verdict: &mut Verdict, key: &str, value: &str) {
    let shown = text::quoted(value);
    match key {
        "endpoint" if value.is_empty() => {
            let message = "endpoint is empty; valid: such as \"endpoint=http://jaeger:14250\"";
            verdict.reject(Cause::Invalid, ARGUMENT, message);
        }
        "pollingIntervalMs" if !WHOLE.is_match(value) => {
            let message = format!("pollingIntervalMs {shown} is not a whole number; valid: such as \"5000\"");
            verdict.reject(Cause::Invalid, ARGUMENT, message);
        }
        "initialSamplingRate" if !is_ratio(value) => {
            let message =
                format!("initialSamplingRate {shown} is not a number from 0 to 1; valid: such as \"0.25\"");
            verdict.reject(Cause::Invalid, ARGUMENT, message);
        }
        _ if JAEGER_KEYS.contains(&key) => {}
        _ => {
            let suggestion = text::suggestion(key, JAEGER_KEYS);
            let (shown, valid) = (text::quoted(key), text::list(JAEGER_KEYS));
            let message = format!("{shown} is not a key of Jaeger samplers{suggestion}; valid: {valid}");
            verdict.warn("jaeger-key-unknown", ARGUMENT, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_plain_decimal_numbers_from_0_to_1() {
        for text in ["0", "1", "1.0", ".5", "5e-1", "0.05e+1", "+1", "-0", "1.", "1e-400"] {
            assert!(is_ratio(text), "{text}");
        }
        for text in [
            "", ".", "NaN", "nan", "Inf", "inf", "0x1p-2", "0_1", "0.2_5", "1.01", "-0.1", "1e400", "1e",
            " 1", "1\n", "25%",
        ] {
            assert!(!is_ratio(text), "{text}");
        }
    }
}
