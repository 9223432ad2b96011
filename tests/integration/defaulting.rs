//! Defaulting, by the operator's own results.

use otel_webhook_api::{
    defaulting,
    defaults::{DefaultImages, LANGUAGES, image_annotation},
    quantity::Quantity,
};
use otel_webhook_testkit::{
    conformance::{OPERATOR_LANGUAGES, cases},
    files::captured,
};
use serde_json::Value;

/// How many cases there are: a file that was cut short must not pass.
const CASES: usize = 87;

/// An object as defaulting leaves it.
pub fn defaulted(object: &Value) -> Value {
    let mut after = object.clone();
    let patch = defaulting(object, &DefaultImages::default());
    json_patch::patch(&mut after, &patch).expect("the operations fit");
    after
}

/// Compares as the README of the cases says: quantities by value, an empty
/// object or null as nothing, unless the input has it.
fn difference(path: &str, got: &Value, expected: &Value) -> Option<String> {
    match (got, expected) {
        (Value::Object(got), Value::Object(expected)) => {
            let keys: std::collections::BTreeSet<_> = got.keys().chain(expected.keys()).collect();
            keys.into_iter().find_map(|key| {
                let side =
                    |members: &serde_json::Map<String, Value>| members.get(key).cloned().unwrap_or_default();
                difference(&format!("{path}/{key}"), &side(got), &side(expected))
            })
        }
        (Value::Array(got), Value::Array(expected)) if got.len() == expected.len() => got
            .iter()
            .zip(expected)
            .enumerate()
            .find_map(|(index, (got, expected))| difference(&format!("{path}/{index}"), got, expected)),
        _ if got == expected || is_nothing(got) && is_nothing(expected) => None,
        _ if Quantity::of(got).is_some() && Quantity::of(got) == Quantity::of(expected) => None,
        _ => Some(format!("{path}: got {got}, expected {expected}")),
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(|members| members.values().all(is_nothing))
}

#[test]
fn every_case_is_met_and_stable() {
    let cases = cases("defaulting.jsonl.gz");
    assert!(cases.len() >= CASES, "only {} of {CASES} cases are there", cases.len());
    let mut failures = Vec::new();
    for case in cases {
        let once = defaulted(&case["input"]);
        if let Some(difference) = difference("", &of_the_operator(&once), &case["expect"]) {
            failures.push(format!("{}: {difference}", case["id"]));
        }
        assert!(defaulting(&once, &DefaultImages::default()).is_empty(), "{} is not stable", case["id"]);
        assert_eq!(kept(&case["input"], &once), None, "{}", case["id"]);
    }
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

/// An object without the annotations of languages that the operator does not have.
fn of_the_operator(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        let others = LANGUAGES.iter().filter(|language| !OPERATOR_LANGUAGES.contains(&language.language));
        for language in others {
            annotations.remove(&image_annotation(language.language));
        }
    }
    object
}

/// Where an object lost something that it had, but for what counted as open.
fn kept(before: &Value, after: &Value) -> Option<String> {
    match (before, after) {
        (Value::Null, _) => None,
        (Value::String(before), _) if before.is_empty() => None,
        (Value::Object(before), Value::Object(after)) => before.iter().find_map(|(key, value)| {
            let lost = || Some(format!("{key} is gone"));
            after.get(key).map_or_else(lost, |after| kept(value, after))
        }),
        _ => (before != after).then(|| format!("{before} became {after}")),
    }
}

#[test]
fn what_the_operator_stored_comes_out_as_it_was_but_for_defaults() {
    for name in ["instrumentation-create", "instrumentation-update"] {
        let review: Value = serde_json::from_str(&captured(name)).expect("JSON");
        let stored = &review["request"]["object"];
        assert_eq!(kept(stored, &defaulted(stored)), None, "{name}");
    }
}
