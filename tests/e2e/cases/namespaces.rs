//! What a namespace says counts for its pods, and what it has for others.

use otel_webhook_testkit::cluster::created::Created;
use serde_json::json;

use crate::audit;
use crate::cluster::{Cluster, asking};

pub fn opt_in(cluster: &Cluster) {
    let namespace = "opt-in";
    cluster.namespace(namespace, &[("inject-java", "true")]);
    cluster.instrumentation(namespace, "default", &json!({}));
    let silent = |name| asking(name, &[]);
    let pod =
        cluster.create_when("the namespace asks", namespace, &silent("asked-for"), Created::is_injected);
    assert_eq!(audit::decision(cluster, namespace, pod.name()), "java/app=Injected");
    let refusing = cluster.create(namespace, &asking("refusing", &[("inject-java", "false")]));
    assert!(refusing.is_untouched(), "the pod's own no did not count: {}", refusing.pod);

    annotate(cluster, namespace, "false");

    let left = |pod: &Created| !pod.is_injected();
    let pod = cluster.create_when("the namespace says no", namespace, &silent("not-asked-for"), left);
    assert!(pod.is_untouched(), "{}", pod.pod);
    assert_eq!(pod.warnings, "");
    assert_eq!(audit::decision(cluster, namespace, pod.name()), "java=SwitchedOff");

    annotate(cluster, namespace, "default");
    cluster.create_when("the namespace names one", namespace, &silent("asked-again"), Created::is_injected);
}

pub fn other_namespace(cluster: &Cluster) {
    cluster.namespace("observability", &[]);
    cluster.namespace("far-away", &[]);
    let image = "registry.example.com/agents/java:named";
    cluster.instrumentation("observability", "shared", &json!({"java": {"image": image}}));
    // One of its own does not come before the one that is named.
    cluster.instrumentation("far-away", "own", &json!({}));
    let pod = asking("far", &[("inject-java", "observability/shared")]);
    let pod = cluster.create_when("the one elsewhere is known", "far-away", &pod, Created::is_injected);
    assert_eq!(pod.container("opentelemetry-auto-instrumentation-java")["image"], image);
    assert!(pod.status().contains("observability/shared"), "{}", pod.status());
    assert_eq!(pod.attribute("app", "k8s.namespace.name"), "far-away");
}

fn annotate(cluster: &Cluster, namespace: &str, value: &str) {
    let annotation = format!("instrumentation.opentelemetry.io/inject-java={value}");
    let ran = cluster.plane.kubectl(&["annotate", "--overwrite", "namespace", namespace, &annotation]);
    assert!(ran.ok, "{}", ran.stderr);
}
