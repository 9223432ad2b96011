//! Validation: the operator's own results, and properties over any `spec`.

use std::{collections::BTreeSet, sync::LazyLock};

use otel_webhook_api::{
    crd,
    defaults::DefaultImages,
    validation::{Problem, Verdict, check_images, validate},
};
use otel_webhook_testkit::{
    conformance::{cases, injection_cases},
    files::captured,
    table::rows,
};
use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};

use crate::defaulting::defaulted;

/// How many cases there are: a file that was cut short must not pass.
const CASES: usize = 129;

fn judged(object: &Value) -> Verdict {
    let object = defaulted(object);
    let mut verdict = validate(&object, None);
    check_images(&mut verdict, &object, &DefaultImages::default());
    verdict
}

/// What is different from the operator, and on purpose (D22): whether the case is allowed.
const DIFFERENT: [(&str, bool); 8] = [
    ("validate-sampler-parentbased_jaeger_remote", true),
    ("validate-jaeger-arg-two-equals", true),
    ("validate-jaeger-arg-no-endpoint", true),
    ("validate-traceidratio-arg-hex", false),
    ("validate-java-volume-limit-negative", false),
    ("validate-env-without-name", false),
    ("validate-env-value-and-valuefrom", false),
    ("validate-limits-below-requests", false),
];

#[test]
fn every_case_has_the_operators_verdict_but_for_the_differences() {
    let cases = cases("validation.jsonl.gz");
    assert!(cases.len() >= CASES, "only {} of {CASES} cases are there", cases.len());
    let failures: Vec<_> = cases.iter().filter_map(failure).collect();
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

fn failure(case: &Value) -> Option<String> {
    let id = case["id"].as_str().expect("an id");
    let verdict = judged(&case["input"]);
    let allowed = case["allowed"].as_bool().unwrap_or_else(|| {
        let different = DIFFERENT.iter().find(|(prefix, _)| id.starts_with(prefix));
        different.unwrap_or_else(|| panic!("no result is known for {id}")).1
    });
    if verdict.is_allowed() != allowed {
        return Some(format!("{id}: allowed {}, but {:?}", !allowed, verdict.errors));
    }
    let fields: Vec<_> = case["fields"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !allowed && !fields.is_empty() && !verdict.errors.iter().any(|error| fields.contains(&&*error.field)) {
        return Some(format!("{id}: none of {fields:?} is in {:?}", verdict.errors));
    }
    let kinds: BTreeSet<_> = verdict.warnings.iter().map(|warning| &*warning.kind).collect();
    let expected = case["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
    // Of images it warns of the same as the operator, and of no other.
    let of_images = |kind: &&str| kind.starts_with("image-not-upgradable");
    // The operator warns of a missing type of the sampler also where no argument is ignored.
    let is_ignored = case["input"].pointer("/spec/sampler/argument").is_some_and(|argument| argument != "");
    let expected: BTreeSet<_> =
        expected.filter(|kind| is_ignored || *kind != "sampler-type-not-set").collect();
    if case["warnings"].is_array()
        && !kinds.iter().copied().filter(of_images).eq(expected.iter().copied().filter(of_images))
    {
        return Some(format!("{id}: {kinds:?}, but expected of images {expected:?}"));
    }
    let mut missing = expected.into_iter().filter(|kind| !kinds.contains(kind));
    missing.next().map(|kind| format!("{id}: no warning {kind} in {kinds:?}"))
}

/// Everything that the injection cases hold was stored by the operator.
#[test]
fn what_the_operator_stores_is_refused_only_for_the_differences() {
    let mut refused = BTreeSet::new();
    for case in injection_cases() {
        for object in case["instrumentations"].as_array().into_iter().flatten() {
            refused.extend(judged(object).errors.iter().map(ToString::to_string));
        }
    }
    let known = ["cannot be set together with"];
    let unknown: Vec<_> =
        refused.iter().filter(|message| !known.iter().any(|known| message.contains(known))).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn captured_instrumentations_are_allowed() {
    for name in ["instrumentation-create", "instrumentation-update"] {
        let review: Value = serde_json::from_str(&captured(name)).expect("JSON");
        let verdict = judged(&review["request"]["object"]);
        assert!(verdict.is_allowed(), "{name}: {:?}", verdict.errors);
    }
}

#[test]
fn the_table_of_resources_is_judged_row_by_row() {
    for row in rows() {
        let verdict = judged(&row.object);
        let errors: Vec<_> = verdict.errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, row.errors, "{}", row.what);
        let mut kinds: Vec<_> = verdict.warnings.iter().map(|warning| warning.kind.to_string()).collect();
        kinds.sort();
        assert_eq!(kinds, row.warnings, "{}", row.what);
        assert!(
            row.crd.is_none() || !row.errors.is_empty(),
            "{}: the CRD must not refuse what validation allows",
            row.what
        );
    }
}

/// The names of all fields of the CRD, so that generated objects get past the first level.
static FIELDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    fn collect(schema: &Value, names: &mut BTreeSet<String>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            names.insert(name.clone());
            collect(field, names);
        }
        let inner = ["items", "additionalProperties"].map(|key| &schema[key]);
        inner.into_iter().filter(|schema| schema.is_object()).for_each(|schema| collect(schema, names));
    }
    let mut names = BTreeSet::new();
    collect(&crd::crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"], &mut names);
    names.into_iter().collect()
});

const TEXTS: [&str; 16] = [
    "",
    "jaeger_remote",
    "traceidratio",
    "endpoint=,pollingIntervalMs=x,=",
    "0.5",
    "2",
    "1Gi",
    "-1",
    "1e400",
    "https://u:p@h:4317/x",
    "http/protobuf",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "In",
    "é;`\n",
    "JAVA_TOOL_OPTIONS",
    "2.2",
];

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        proptest::sample::select(&TEXTS[..]).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Value::from), object(inner)]
    })
}

fn object<S: Strategy<Value = Value> + 'static>(value: S) -> impl Strategy<Value = Value> {
    let key = prop_oneof![4 => proptest::sample::select(&FIELDS[..]), 1 => ".{0,8}"];
    vec((key, value), 0..8).prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()))
}

fn is_new(error: &Problem, known: &[Problem]) -> bool {
    !known.iter().any(|known| known == error)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_spec_gets_an_answer_and_defaulting_adds_no_error(spec in object(any_value())) {
        let object = json!({"metadata": {"name": "any"}, "spec": spec});
        let before = validate(&object, None);
        let after = defaulted(&object);
        for error in validate(&after, None).errors {
            prop_assert!(!is_new(&error, &before.errors), "{error} is new");
        }
        prop_assert!(defaulted(&after) == after, "defaulting is not stable");
        // An update that changes nothing is never refused, and says the same.
        let same = validate(&after, Some(&object));
        prop_assert!(same.is_allowed(), "{:?}", same.errors);
    }

    #[test]
    fn any_object_gets_an_answer(object in any_value(), old in any_value()) {
        let after = defaulted(&object);
        validate(&after, Some(&old));
    }

    #[test]
    fn what_is_allowed_can_be_used(spec in object(any_value())) {
        let object = json!({"metadata": {"name": "any"}, "spec": spec});
        if validate(&object, None).is_allowed() {
            let read = serde_json::from_value::<otel_webhook_api::InstrumentationSpec>(spec);
            prop_assert!(read.is_ok(), "{read:?}");
        }
    }
}
