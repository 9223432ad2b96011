//! Pods, Instrumentations and other objects for tests, and how to compare them.

#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` makes a value, and a test reads better without the &"
)]

use std::collections::BTreeMap;

use otel_webhook_api::ANNOTATION_PREFIX;
use serde_json::{Value, json};

/// The namespace of pods and Instrumentations.
pub const NAMESPACE: &str = "shop";

/// A LimitRange of the usual namespace, `bounds`, with this item.
pub fn limit_range(item: &Value) -> Value {
    let metadata = json!({"name": "bounds", "namespace": NAMESPACE});
    json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [item]}})
}

/// A quota of the usual namespace, `team`, of which nothing is used yet.
pub fn quota(hard: &Value) -> Value {
    let metadata = json!({"name": "team", "namespace": NAMESPACE});
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}})
}

/// A specification with some of the usual settings.
pub fn usual_spec() -> Value {
    json!({
        "exporter": {"endpoint": "http://collector:4317"},
        "propagators": ["tracecontext", "b3"],
        "sampler": {"type": "parentbased_traceidratio", "argument": "0.25"},
        "env": [{"name": "OTEL_LOG_LEVEL", "value": "info"}],
    })
}

/// The items of a list; none where it is no list.
pub fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Documents as YAML.
pub fn stream(documents: &[Value]) -> String {
    documents.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n")
}

/// An Instrumentation of the usual namespace.
pub fn instrumentation(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "opentelemetry.io/v1alpha1",
        "kind": "Instrumentation",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    })
}

/// A pod that has annotations under the prefix, with this specification.
pub fn pod(annotations: &[(&str, &str)], spec: Value) -> Value {
    let annotations: BTreeMap<_, _> =
        annotations.iter().map(|(name, value)| (format!("{ANNOTATION_PREFIX}{name}"), *value)).collect();
    json!({"metadata": {"generateName": "web-", "annotations": annotations}, "spec": spec})
}

/// A pod that asks for languages in its one container, `app`.
pub fn asking(languages: &[&str], container: Value) -> Value {
    let mut app = json!({"name": "app", "image": "example.com/app:1"});
    app.as_object_mut().expect("an object").extend(container.as_object().expect("an object").clone());
    let asks: Vec<_> = languages.iter().map(|language| format!("inject-{language}")).collect();
    let mut annotations: Vec<_> = asks.iter().map(|ask| (ask.as_str(), "true")).collect();
    annotations.extend([("container-names", "app"), ("otel-go-auto-target-exe", "/app")]);
    pod(&annotations, json!({"containers": [app]}))
}

/// Where two values differ, one line each.
pub fn compare(path: &str, got: &Value, expected: &Value) -> Vec<String> {
    match (got, expected) {
        _ if got == expected => Vec::new(),
        (Value::Object(one), Value::Object(other)) => {
            let mut keys: Vec<_> = one.keys().chain(other.keys()).collect();
            keys.sort();
            keys.dedup();
            let pairs = keys.into_iter().map(|key| (key, &got[key], &expected[key]));
            pairs.flat_map(|(key, one, other)| compare(&format!("{path}/{key}"), one, other)).collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other).enumerate();
            pairs.flat_map(|(at, (one, other))| compare(&format!("{path}/{at}"), one, other)).collect()
        }
        _ => vec![format!("{path}\n      got      {got}\n      expected {expected}")],
    }
}
