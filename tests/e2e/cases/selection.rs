//! Which of a namespace's Instrumentations counts for "true".

use otel_webhook_testkit::cluster::created::{AGENT, Created};
use serde_json::{Value, json};

use crate::audit;
use crate::cluster::{Cluster, asking, java};

pub fn none(cluster: &Cluster) {
    cluster.namespace("none", &[]);
    let before = cluster.webhook.decisions("java", "NoInstrumentation");
    let pod = cluster.create("none", &java("alone"));
    assert!(pod.is_untouched(), "{}", pod.pod);
    let sentence = "there is no Instrumentation in namespace \"none\"";
    assert!(pod.warnings.contains(&format!("Warning: otel-webhook: java: {sentence}")), "{}", pod.warnings);
    assert_eq!(audit::decision(cluster, "none", "alone"), "java=NoInstrumentation");
    assert_eq!(cluster.webhook.decisions("java", "NoInstrumentation"), before + 1);
}

pub fn two(cluster: &Cluster) {
    cluster.namespace("two", &[]);
    cluster.instrumentation("two", "first", &json!({}));
    cluster.instrumentation("two", "second", &json!({}));
    let both = |pod: &Created| pod.warnings.contains("first, second");
    let pod = cluster.create_when("both are known", "two", &java("torn"), both);
    assert!(pod.is_untouched(), "{}", pod.pod);
    let sentence =
        "several Instrumentations of namespace \"two\" match this pod with the same priority: first, second";
    assert!(pod.warnings.contains(sentence), "{}", pod.warnings);
    assert_eq!(audit::decision(cluster, "two", "torn"), "java=AmbiguousInstrumentation");
    // The namespace's confusion is none of a pod that names one.
    let named = cluster.create("two", &asking("named", &[("inject-java", "second")]));
    assert!(named.is_injected() && named.status().contains("two/second"), "{}", named.pod);
}

pub fn selector(cluster: &Cluster) {
    let namespace = "selector";
    cluster.namespace(namespace, &[]);
    cluster.instrumentation(namespace, "for-all", &with_image("for-all"));
    let mut selecting = with_image("for-orders");
    selecting["selector"] = json!({"matchLabels": {"app": "order"}});
    cluster.instrumentation(namespace, "for-orders", &selecting);
    let mut order = java("order");
    order["metadata"]["labels"] = json!({"app": "order"});
    cluster.create_when("the selecting one is known", namespace, &order, |pod| image(pod) == "for-orders");
    cluster.create_when("the other is known", namespace, &java("any"), |pod| image(pod) == "for-all");

    cluster.plane.kubectl(&["delete", "--namespace", namespace, "instrumentation", "for-all"]);

    let none = |pod: &Created| pod.warnings.contains("selects this pod");
    let pod = cluster.create_when("the other is gone", namespace, &java("unselected"), none);
    assert!(pod.is_untouched(), "{}", pod.pod);
    assert!(pod.warnings.contains("the selectors of for-orders do not match its labels"), "{}", pod.warnings);
    assert_eq!(audit::decision(cluster, namespace, "unselected"), "java=NoneSelectsPod");
}

pub fn priority(cluster: &Cluster) {
    let namespace = "priority";
    cluster.namespace(namespace, &[]);
    for (name, priority) in [("low", 1), ("high", 2)] {
        let mut spec = with_image(name);
        spec["priority"] = json!(priority);
        cluster.instrumentation(namespace, name, &spec);
    }
    cluster.create_when("both are known", namespace, &java("first"), |pod| image(pod) == "high");
    let mut raised = with_image("low");
    raised["priority"] = json!(3);
    cluster.instrumentation(namespace, "low", &raised);
    cluster.create_when("the other is raised", namespace, &java("second"), |pod| image(pod) == "low");
}

fn with_image(image: &str) -> Value {
    json!({"java": {"image": image}})
}

/// The image of the agent, which tells whose Instrumentation was used.
fn image(pod: &Created) -> &str {
    if pod.is_injected() { pod.container(AGENT)["image"].as_str().unwrap_or_default() } else { "" }
}
