//! Pods that the webhook cannot help, or not in all that they ask for.

use otel_webhook_testkit::cluster::created::Created;
use serde_json::json;

use crate::audit;
use crate::cluster::{Cluster, asking, java};
use crate::registration;

/// What is asked for, the sentence that comes back, and its code in the audit log.
type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str, &'static str);

const ROWS: [Row; 5] = [
    (
        "missing",
        &[("inject-java", "nowhere/nothing")],
        "Instrumentation \"nowhere/nothing\" not found",
        "java=InstrumentationNotFound",
    ),
    (
        "misspelt",
        &[("inject-java", "defualt")],
        "Instrumentation \"not-helped/defualt\" not found; its namespace has: default",
        "java=InstrumentationNotFound",
    ),
    (
        "unknown-container",
        &[("inject-java", "true"), ("container-names", "ap")],
        "container \"ap\" not found; the pod has: app",
        "java/ap=ContainerNotFound",
    ),
    (
        "named-twice",
        &[("inject-java", "true"), ("java-container-names", "app,app")],
        "container \"app\" is named twice",
        "java=ContainerNamedTwice",
    ),
    (
        "without-lists",
        &[("inject-java", "true"), ("inject-sdk", "true")],
        "the pod opts in to several languages (java, sdk)",
        "ContainerListMissing",
    ),
];

pub fn not_helped(cluster: &Cluster) {
    let namespace = "not-helped";
    cluster.instrumented_namespace(namespace);
    for (name, annotations, sentence, code) in ROWS {
        let pod = cluster.create(namespace, &asking(name, annotations));
        assert!(pod.is_untouched(), "{name}: {}", pod.pod);
        assert!(pod.warnings.contains(sentence), "{name}: {}", pod.warnings);
        described(cluster, namespace, name, sentence);
        let decision = audit::decision(cluster, namespace, name);
        assert!(decision.contains(code), "{name}: {decision}");
    }
}

/// `kubectl describe pod` shows the sentence, whole.
fn described(cluster: &Cluster, namespace: &str, name: &str, sentence: &str) {
    let ran = cluster.plane.kubectl(&["describe", "pod", name, "--namespace", namespace]);
    let words: Vec<_> = ran.stdout.split_whitespace().collect();
    let is_shown = words.join(" ").contains(sentence);
    let of_message = ran.stdout.split_once("otel-webhook/message:");
    let of_message = of_message.and_then(|(_, rest)| rest.split_once("otel-webhook/status:"));
    let (message, _) = of_message.unwrap_or_else(|| panic!("{name}: {}", ran.stdout));
    assert!(is_shown && !message.contains("..."), "{name}: {}", ran.stdout);
}

pub fn partly_helped(cluster: &Cluster) {
    let namespace = "partly-helped";
    cluster.instrumented_namespace(namespace);
    let _java_alone = cluster.webhook.restart_with(&["--languages", "java"]);
    let annotations = [("inject-java", "true"), ("container-names", "app, ghost"), ("inject-sdk", "true")];
    let pod = cluster.create(namespace, &asking("partly", &annotations));
    assert!(pod.is_injected(), "{}", pod.pod);
    assert!(pod.warnings.contains("container \"ghost\" not found"), "{}", pod.warnings);
    assert!(pod.warnings.contains("the language sdk is not enabled"), "{}", pod.warnings);
    let decision = audit::decision(cluster, namespace, "partly");
    for part in ["java/app=Injected", "java/ghost=ContainerNotFound", "sdk=LanguageDisabled"] {
        assert!(decision.contains(part), "{decision}");
    }
    let pod = cluster.create(namespace, &asking("disabled", &[("inject-sdk", "true")]));
    assert!(pod.is_untouched(), "{}", pod.pod);
    assert!(pod.warnings.contains("the language sdk is not enabled"), "{}", pod.warnings);
    assert_eq!(audit::decision(cluster, namespace, "disabled"), "sdk=LanguageDisabled");
}

/// One that was stored when the schema let it through, and that nobody can use.
pub fn broken_neighbour(cluster: &Cluster) {
    let namespace = "broken";
    cluster.instrumented_namespace(namespace);
    let selector = json!({"matchExpressions": [{"key": "app", "operator": "Resembles", "values": ["x"]}]});
    registration::apply_unchecked(
        &cluster.plane,
        &json!({
            "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
            "metadata": {"name": "broken", "namespace": namespace}, "spec": {"selector": selector},
        }),
    );
    let named = asking("named", &[("inject-java", "broken")]);
    let known = |pod: &Created| pod.warnings.contains("cannot be used");
    let pod = cluster.create_when("the broken one is known", namespace, &named, known);
    assert!(pod.is_untouched(), "{}", pod.pod);
    assert!(pod.warnings.contains("\"broken/broken\" cannot be used: spec.selector"), "{}", pod.warnings);
    assert_eq!(audit::decision(cluster, namespace, "named"), "java=InstrumentationInvalid");
    let other = cluster.create(namespace, &java("other"));
    assert!(other.is_injected() && other.status().contains("broken/default"), "{}", other.pod);
}

/// One that was stored when the schema let it through: it makes no pod that the API server
/// would refuse, and is used for what it is right for.
pub fn broken_language(cluster: &Cluster) {
    let namespace = "broken-language";
    cluster.namespace(namespace, &[]);
    let spec =
        json!({"java": {"image": " ", "volumeLimitSize": "abc"}, "exporter": {"endpoint": "http://c:4317"}});
    registration::apply_unchecked(
        &cluster.plane,
        &json!({
            "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
            "metadata": {"name": "broken", "namespace": namespace}, "spec": spec,
        }),
    );
    let annotations = [("inject-java", "true"), ("inject-python", "true"), ("container-names", "app")];
    let known = |pod: &Created| pod.warnings.contains("cannot be used");
    let pod = cluster.create_when("the broken one is known", namespace, &asking("both", &annotations), known);
    let sentence = "java: Instrumentation \"broken-language/broken\" cannot be used: spec.java.image: \" \" is not an image";
    assert!(pod.warnings.contains(sentence), "{}", pod.warnings);
    assert_eq!(pod.variable("app", "OTEL_EXPORTER_OTLP_ENDPOINT"), "http://c:4317");
    let decision = audit::decision(cluster, namespace, "both");
    assert_eq!(decision, "java=InstrumentationInvalid python/app=Injected");
}
