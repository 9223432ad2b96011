//! What injection has no business with comes back as it was, in value and
//! order: generated pods with fields nobody knows at every level, through the
//! HTTP endpoint.

use std::cell::RefCell;

use otel_webhook_inject::Settings;
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
use serde_json::{Map, Value, json};

use crate::routes::{PODS, Webhook, create, patched};

/// Marks what the pod had itself; everything that the webhook adds lacks it.
const MARK: &str = "xOwn";

fn webhook() -> Webhook {
    let stored = json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": "default", "namespace": "shop"},
        "spec": {
            "env": [{"name": "FROM_SPEC", "value": "1"}],
            "exporter": {"endpoint": "https://collector:4317", "tls": {"secretName": "certs", "ca_file": "ca.crt"}},
            "java": {"extensions": [{"image": "extension", "dir": "/ext"}]},
        },
    });
    Webhook::new(&[stored], Settings::default())
}

/// Any JSON value, two levels deep.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[ -~ü\\n\"\\\\]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec(("y[a-z~/]{0,4}", inner), 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// An object with these members, in any order, marked, among members nobody knows.
fn object(known: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let known: Vec<_> =
        known.into_iter().map(|(key, value)| value.prop_map(move |value| (key.to_owned(), value))).collect();
    let unknown = vec(("x[a-z~/]{1,5}", any_value()), 0..3);
    (known, unknown)
        .prop_map(|(known, unknown)| {
            known.into_iter().chain(unknown).chain([(MARK.to_owned(), json!(1))]).collect()
        })
        .prop_flat_map(|members: Vec<(String, Value)>| Just(members).prop_shuffle())
        .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()))
        .boxed()
}

fn list(item: BoxedStrategy<Value>, most: usize) -> BoxedStrategy<Value> {
    prop_oneof![1 => Just(Value::Null), 6 => vec(item, 0..=most).prop_map(Value::from)].boxed()
}

fn text(pattern: &'static str) -> BoxedStrategy<Value> {
    pattern.prop_map(Value::from).boxed()
}

fn container(name: &'static str) -> BoxedStrategy<Value> {
    let variable = prop_oneof![
        object(vec![("name", text("[A-Z]{1,6}")), ("value", text("[ -~]{0,6}"))]),
        object(vec![
            ("name", text("[A-Z]{1,6}")),
            ("valueFrom", object(vec![("fieldRef", object(vec![("fieldPath", text("metadata.name"))]))])),
        ]),
    ];
    let mount = object(vec![("name", text("[a-z]{1,6}")), ("mountPath", text("/[a-z]{1,6}"))]);
    object(vec![
        ("name", Just(json!(name)).boxed()),
        ("image", text("[a-z]{1,5}(:[0-9]{1,3})?")),
        ("env", list(variable.boxed(), 4)),
        ("volumeMounts", list(mount, 3)),
        ("resources", object(vec![("limits", object(vec![("cpu", text("[1-9]00m"))]))])),
        (
            "securityContext",
            prop_oneof![
                Just(Value::Null),
                object(vec![("runAsUser", any::<u32>().prop_map(Value::from).boxed())])
            ]
            .boxed(),
        ),
    ])
}

fn pod() -> BoxedStrategy<Value> {
    let ask = prop::sample::select(vec!["inject-java", "inject-sdk"]);
    let listed = prop::sample::subsequence(vec!["app", "side", "setup"], 0..=3);
    let annotations = (ask, listed).prop_map(|(ask, names)| {
        json!({
            format!("instrumentation.opentelemetry.io/{ask}"): "true",
            "instrumentation.opentelemetry.io/container-names": names.join(","),
            MARK: "1",
        })
    });
    let volume = object(vec![("name", text("[a-z]{1,6}")), ("emptyDir", object(vec![]))]);
    let containers = (container("app"), container("side")).prop_map(|(app, side)| json!([app, side]));
    let init = prop_oneof![Just(Value::Null), container("setup").prop_map(|setup| json!([setup]))];
    object(vec![
        (
            "metadata",
            object(vec![("annotations", annotations.boxed()), ("generateName", text("[a-z]{1,6}-"))]),
        ),
        (
            "spec",
            object(vec![
                ("containers", containers.boxed()),
                ("initContainers", init.boxed()),
                ("volumes", list(volume, 3)),
                ("nodeName", text("(node-1)?")),
            ]),
        ),
    ])
}

/// Takes off what was added: list items without the mark, and members that the original lacks.
/// What was null or absent may have become something.
fn own_part(before: &Value, after: &Value) -> Value {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let kept = after
                .iter()
                .filter_map(|(key, value)| Some((key.clone(), own_part(before.get(key)?, value))));
            Value::Object(kept.collect())
        }
        (Value::Array(before), Value::Array(after)) if after.iter().all(Value::is_object) => {
            let unmarked = before.iter().all(|item| item.get(MARK).is_none());
            let own = after.iter().filter(|item| unmarked && !before.is_empty() || item.get(MARK).is_some());
            Value::Array(before.iter().zip(own).map(|(before, after)| own_part(before, after)).collect())
        }
        (Value::Null, Value::Array(_)) => Value::Null,
        _ => after.clone(),
    }
}

#[test]
fn everything_else_comes_back_as_it_was() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let webhook = webhook();
    let review = |pod: &Value| {
        let response = runtime.block_on(webhook.response(PODS, &create("pods", pod)));
        assert_eq!(response["allowed"], true, "{response}");
        response
    };
    let injected = RefCell::new(0);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let checked = runner.run(&pod(), |before| {
        let after = patched(&before, &review(&before));
        if after == before {
            return Ok(());
        }
        // Text, not values: the order of members counts.
        prop_assert_eq!(own_part(&before, &after).to_string(), before.to_string());
        let again = review(&after);
        prop_assert!(again.get("patch").is_none(), "a second review changes {:?}", again);
        *injected.borrow_mut() += 1;
        Ok(())
    });
    checked.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(*injected.borrow() > 200, "only {} of 300 pods were injected", injected.borrow());
}
