//! Default images of a namespace: one namespace takes a new agent first.

use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use super::{check::check, status};
use crate::cluster::{Cluster, LIMIT, java};
use crate::controller::deployment;

const FIRST: &str = "image-first";
const OTHER: &str = "image-other";
const ANNOTATION: &str = "otel-webhook/default-image-java";
const AGENT: &str = "opentelemetry-auto-instrumentation-java";
const NEW: &str = "registry.example.com/agents/java:3.0.0";

pub fn of_one_namespace(cluster: &Cluster) {
    for namespace in [FIRST, OTHER] {
        cluster.instrumented_namespace(namespace);
        cluster.apply(&deployment(namespace, "order", 2));
        cluster.pods_of(namespace, "app=order", 2);
    }
    let image =
        |namespace: &str| cluster.dry_run(namespace, &java("probe")).container(AGENT)["image"].clone();
    let before = image(OTHER);

    annotate(cluster, &format!("{ANNOTATION}={NEW}"));
    until("the webhook knows the image of the namespace", LIMIT, || (image(FIRST) == NEW).then_some(()));
    assert_eq!(image(OTHER), before);
    let note = format!(
        "the default image \\\"{NEW}\\\" of the namespace is used instead of \\\"{}\\\"",
        text(&before)
    );
    let pod = cluster.create(FIRST, &java("new"));
    assert!(pod.status().contains(&note) && pod.warnings.is_empty(), "{}: {}", pod.warnings, pod.status());

    let agents = |namespace: &str| {
        let checked = check(&cluster.plane, &["--preview", "-n", namespace]);
        let order = checked.found.iter().find(|workload| workload["name"] == "order").expect("the workload");
        order["languages"][0]["agents"].clone()
    };
    let now = json!({(text(&before)): 2});
    assert_eq!(agents(FIRST), json!({"now": now, "next": NEW}));
    assert_eq!(agents(OTHER), json!({"now": now, "next": before}));
    assert_eq!(state(cluster, FIRST), ("stale".to_owned(), "ConfigurationChanged".to_owned()));
    assert_eq!(state(cluster, OTHER), ("injected".to_owned(), String::new()));

    let ran = cluster.plane.kubectl(&["delete", "pods", "--namespace", FIRST, "--selector", "app=order"]);
    assert!(ran.ok, "{}", ran.stderr);
    until("the pods that replace them are up to date", LIMIT, || {
        (state(cluster, FIRST).0 == "injected").then_some(())
    });

    annotate(cluster, &format!("{ANNOTATION}=java 3"));
    let said = until("the webhook warns of what is no image", LIMIT, || {
        let probe = cluster.dry_run(FIRST, &java("probe"));
        (probe.container(AGENT)["image"] == before).then_some(probe.warnings)
    });
    assert!(said.contains("is \"java 3\", which is not an image reference and is ignored"), "{said}");
    let found = check(&cluster.plane, &["-n", FIRST]);
    let has = |reason: &str| found.found.iter().any(|result| result["reason"] == reason);
    assert!(has("default-image-invalid") && has("DefaultImageInvalid"), "{found:?}");
}

fn annotate(cluster: &Cluster, annotation: &str) {
    let ran = cluster.plane.kubectl(&["annotate", "--overwrite", "namespace", FIRST, annotation]);
    assert!(ran.ok, "{}", ran.stderr);
}

/// The state of the workload, and its reason.
fn state(cluster: &Cluster, namespace: &str) -> (String, String) {
    let report = status::of_namespace(cluster, namespace, &[]);
    status::states(&report.found[0]).remove("order java").expect("the workload")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
