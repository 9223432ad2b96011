//! The annotation `otel-webhook/message`: sentences where something is amiss, and only there.

use otel_webhook_inject::{MESSAGE, STATUS};
use otel_webhook_testkit::{
    objects::{asking, pod},
    surroundings::{Surroundings, with},
};
use serde_json::{Value, json};

fn stamping(spec: Value) -> Surroundings {
    let mut around = with(spec);
    around.settings.stamp = true;
    around
}

fn app() -> Value {
    json!({"containers": [{"name": "app", "image": "a:1"}]})
}

/// A pod that names an Instrumentation that does not exist.
fn in_vain(name: &str) -> Value {
    pod(&[("inject-java", name)], app())
}

const NOT_FOUND: &str = "java: Instrumentation \"shop/ordr\" not found; its namespace has: inst";

#[test]
fn the_sentence_is_on_a_pod_that_is_not_injected_and_not_in_its_status() {
    let injected = stamping(json!({})).inject(&in_vain("ordr"));
    let annotations = &injected.pod["metadata"]["annotations"];
    assert_eq!(annotations[MESSAGE], NOT_FOUND);
    assert_eq!(annotations[STATUS], r#"[{"language":"java","outcome":"InstrumentationNotFound"}]"#);
}

#[test]
fn a_warning_about_an_injected_container_is_on_the_pod() {
    let endpoint = json!({"exporter": {"endpoint": "collector:4317"}});
    let injected = stamping(endpoint).inject(&asking(&["java"], json!({})));
    assert_eq!(injected.codes(), ["java/app: Injected"]);
    let message = injected.pod["metadata"]["annotations"][MESSAGE].as_str().expect("a sentence");
    assert!(message.starts_with("java in app: ") && message.contains("collector:4317"), "{message}");
}

#[test]
fn it_is_absent_where_nothing_is_amiss() {
    for languages in [&["java"][..], &["java", "sdk"]] {
        let injected = stamping(json!({})).inject(&asking(languages, json!({})));
        let annotations = injected.pod["metadata"]["annotations"].as_object().expect("annotations");
        assert!(annotations.contains_key(STATUS) && !annotations.contains_key(MESSAGE), "{annotations:?}");
    }
}

#[test]
fn it_is_absent_without_the_stamp() {
    let injected = with(json!({})).inject(&in_vain("ordr"));
    assert!(injected.is_unchanged(), "{}", injected.outcome.patch);
}

#[test]
fn a_second_review_changes_nothing() {
    let around = stamping(json!({"exporter": {"endpoint": "collector:4317"}}));
    let partial = pod(&[("inject-java", "true"), ("container-names", "app,ghost")], app());
    for pod in [in_vain("ordr"), partial, asking(&["java"], json!({}))] {
        let first = around.inject(&pod);
        assert!(first.pod["metadata"]["annotations"][MESSAGE].is_string(), "{}", first.pod);
        let again = around.inject(&first.pod);
        assert!(again.is_unchanged(), "{}", again.outcome.patch);
    }
}

/// Templates are often made from the YAML of a running pod.
#[test]
fn one_that_was_copied_is_replaced_or_removed() {
    let around = stamping(json!({}));
    let copied = |mut pod: Value| {
        pod["metadata"]["annotations"][MESSAGE] = json!("java: an old sentence");
        around.inject(&pod).pod["metadata"]["annotations"][MESSAGE].clone()
    };
    assert_eq!(copied(in_vain("ordr")), NOT_FOUND);
    assert_eq!(copied(asking(&["java"], json!({}))), Value::Null);
    assert_eq!(copied(pod(&[("inject-java", "false")], app())), Value::Null);
}

#[test]
fn a_pod_that_was_injected_before_gets_it_once() {
    let mut around = stamping(json!({}));
    let injected = around.inject(&asking(&["java"], json!({})));
    let mut other = injected.pod;
    let annotations = other["metadata"]["annotations"].as_object_mut().expect("annotations");
    annotations.remove(STATUS);
    annotations.insert("instrumentation.opentelemetry.io/inject-go".to_owned(), json!("true"));
    around.settings.languages =
        otel_webhook_inject::language::LanguageSet::parse("java").expect("a language");
    let first = around.inject(&other);
    let message = first.pod["metadata"]["annotations"][MESSAGE].as_str().expect("a sentence");
    assert!(message.starts_with("go: the language go is not enabled"), "{message}");
    assert!(around.inject(&first.pod).is_unchanged());
}

/// The API server rejects a mirror pod that was changed.
#[test]
fn mirror_pods_get_none() {
    let mut mirror = in_vain("true");
    mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = json!("hash");
    let injected = stamping(json!({})).inject(&mirror);
    assert_eq!(injected.codes(), ["java: MirrorPod"]);
    assert!(injected.is_unchanged(), "{}", injected.outcome.patch);
}

#[test]
fn the_status_has_the_image_of_the_agent() {
    let around = stamping(json!({"java": {"image": "registry/java:1"}}));
    let injected = around.inject(&asking(&["java", "sdk"], json!({})));
    let status = injected.pod["metadata"]["annotations"][STATUS].as_str().expect("a status");
    let status: Value = serde_json::from_str(status).expect("JSON");
    assert_eq!(status[0]["image"], "registry/java:1");
    assert_eq!((&status[1]["language"], &status[1]["image"]), (&json!("sdk"), &Value::Null));
}
