//! A pod that the API server sends once more, since another webhook has changed it after ours
//! (`reinvocationPolicy: IfNeeded`), counts once. Through the router.

use otel_webhook_inject::{LABEL, Settings, language::LanguageSet};
use otel_webhook_testkit::objects::{instrumentation, pod};
use serde_json::{Value, json};

use crate::{
    logs::Log,
    routes::{self, PODS, create, patched},
};

/// The webhook's routes, with what they count.
struct Webhook(routes::Webhook);

impl Webhook {
    fn new() -> Self {
        let languages = LanguageSet::parse("java,sdk,nginx").expect("languages");
        let settings = Settings { languages, ..Settings::default() };
        Self(routes::Webhook::new(&[instrumentation("inst", json!({}))], settings))
    }

    /// The pod after a review.
    async fn review(&self, pod: &Value) -> Value {
        patched(pod, &self.0.response(PODS, &create("pods", pod)).await)
    }

    /// What was counted so far: `language/outcome=count`, sorted.
    fn counted(&self) -> Vec<String> {
        let text = self.0.metrics.encode();
        let of_injections = |line: &str| {
            let labels = line.strip_prefix("otel_webhook_injections_total{language=\"")?;
            Some(labels.replace("\",outcome=\"", "/").replace("\"} ", "="))
        };
        let mut counted: Vec<String> = text.lines().filter_map(of_injections).collect();
        counted.sort();
        counted
    }
}

/// A pod with annotations under the prefix, and two containers.
fn asking(annotations: &[(&str, &str)]) -> Value {
    let spec = json!({"containers": [{"name": "app", "image": "a:1"}, {"name": "worker", "image": "w:1"}]});
    let mut pod = pod(annotations, spec);
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod
}

/// Reviews a pod, lets another webhook add a container, and reviews it again. Gives the label,
/// and what was counted by the first review and by both.
async fn reviewed_twice(annotations: &[(&str, &str)]) -> (Value, Vec<String>, Vec<String>) {
    let webhook = Webhook::new();
    let mut after = webhook.review(&asking(annotations)).await;
    let first = webhook.counted();
    let mesh = json!({"name": "mesh", "image": "mesh:1"});
    after["spec"]["containers"].as_array_mut().expect("containers").insert(0, mesh);
    let again = webhook.review(&after).await;
    assert_eq!(again, after, "the second review changes nothing");
    (after["metadata"]["labels"][LABEL].clone(), first, webhook.counted())
}

#[tokio::test]
async fn an_injection_counts_once() {
    for language in ["java", "sdk", "nginx"] {
        let asks = [(format!("inject-{language}"), "true".to_owned())];
        let asks: Vec<_> = asks.iter().map(|(key, value)| (&**key, &**value)).collect();
        let (label, first, both) = reviewed_twice(&asks).await;
        assert_eq!(label, "true");
        assert_eq!(first, [format!("{language}/Injected=1")]);
        assert_eq!(both, [format!("{language}/AlreadyInjected=1"), format!("{language}/Injected=1")]);
    }
}

#[tokio::test]
async fn what_is_missing_beside_an_injection_counts_once() {
    let asks = [
        ("inject-java", "true"),
        ("container-names", "app,ghost"),
        ("inject-go", "true"),
        ("inject-python", "false"),
    ];
    let (label, first, both) = reviewed_twice(&asks).await;
    assert_eq!(label, "partial");
    let once =
        ["go/LanguageDisabled=1", "java/ContainerNotFound=1", "java/Injected=1", "python/SwitchedOff=1"];
    assert_eq!(first, once);
    assert_eq!(both, [once[0], "java/AlreadyInjected=1", once[1], once[2], once[3]]);
}

#[tokio::test]
async fn what_is_asked_in_vain_counts_once() {
    let (label, first, both) = reviewed_twice(&[("inject-java", "missing"), ("inject-go", "true")]).await;
    assert_eq!(label, "false");
    assert_eq!(first, ["go/LanguageDisabled=1", "java/InstrumentationNotFound=1"]);
    assert_eq!(both, first);
}

#[tokio::test]
async fn another_pod_in_vain_counts_again() {
    let webhook = Webhook::new();
    let pod = asking(&[("inject-java", "missing")]);
    for count in 1..=2 {
        webhook.review(&pod).await;
        assert_eq!(webhook.counted(), [format!("java/InstrumentationNotFound={count}")]);
    }
}

/// The sentence is in the log as it is on the pod, and a second review does not repeat it.
#[tokio::test]
async fn what_is_asked_in_vain_is_logged_once_as_a_warning() {
    let log = Log::default();
    let logging = log.keep();
    reviewed_twice(&[("inject-java", "missing"), ("inject-go", "true")]).await;
    drop(logging);
    let lines = log.lines();
    let levels: Vec<_> = lines.iter().map(|line| line["level"].as_str().expect("a level")).collect();
    assert_eq!(levels, ["WARN", "INFO"], "{lines:?}");
    let fields = &lines[0]["fields"];
    assert_eq!(fields["findings"], "go=LanguageDisabled java=InstrumentationNotFound");
    assert_eq!(
        fields["reason"],
        "go: the language go is not enabled in this installation; --languages lists the enabled ones; \
         java: Instrumentation \"shop/missing\" not found; its namespace has: inst"
    );
    assert!(lines[1]["fields"]["reason"].is_null(), "{}", lines[1]);
}

/// A copied stamp does not hide that another outcome came of the pod.
#[tokio::test]
async fn a_stamp_of_another_outcome_does_not_keep_a_pod_from_being_counted() {
    let webhook = Webhook::new();
    let stamped = webhook.review(&asking(&[("inject-java", "missing")])).await;
    let mut copy = asking(&[("inject-java", "absent")]);
    for (key, value) in stamped["metadata"]["annotations"].as_object().expect("annotations") {
        if key.starts_with("otel-webhook/") {
            copy["metadata"]["annotations"][key] = value.clone();
        }
    }
    webhook.review(&copy).await;
    assert_eq!(webhook.counted(), ["java/InstrumentationNotFound=2"]);
}

#[tokio::test]
async fn a_copied_stamp_keeps_no_injection_from_being_counted() {
    let webhook = Webhook::new();
    let mut pod = asking(&[("inject-java", "true")]);
    let injected = webhook.review(&pod).await;
    for field in ["annotations", "labels"] {
        pod["metadata"][field] = injected["metadata"][field].clone();
    }

    let again = webhook.review(&pod).await;

    assert!(again["spec"]["initContainers"].is_array(), "{again}");
    assert_eq!(webhook.counted(), ["java/Injected=2"]);
}
