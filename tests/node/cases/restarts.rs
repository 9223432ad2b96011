//! Restarts by consent, of pods that run.

use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, HOME, LIMIT};
use crate::service::JAVA;
use crate::workload::{Running, deployment, service};

const NAMESPACE: &str = "wave";
const NAMES: [&str; 3] = ["one", "two", "three"];

/// A JVM that dies of its new agent stops the restarts: the pods that ran keep running, and the other workloads are
/// left alone.
pub fn stopped_by_a_jvm_that_dies(cluster: &Cluster) {
    let pace =
        ["settle=1s", "observe=5s", "progress=60s"].map(|value| format!("--set controller.restarts.{value}"));
    cluster.shell(&format!(
        "helm upgrade otel-webhook charts/otel-webhook --namespace {HOME} --reuse-values --set controller.restarts.enabled=true {}",
        pace.join(" ")
    ));
    cluster.rolled_out(HOME, "otel-webhook-controller");
    cluster.namespace(NAMESPACE, &json!({}));
    cluster.instrumentation(NAMESPACE, "default", &json!({}));
    cluster.shell(&format!("kubectl annotate namespace {NAMESPACE} otel-webhook/restart=rollout"));
    for name in NAMES {
        cluster.apply(&deployment(NAMESPACE, name, 1, service(name, JAVA, "initContainer")));
    }
    let before = NAMES.map(|name| Running::of_deployment(cluster, NAMESPACE, name).remove(0));
    let counted = |wanted: &Value| {
        until(&format!("the controller counts {wanted}"), LIMIT, || {
            let found = cluster.get(NAMESPACE, &["otelinst", "default"]);
            let wanted = wanted.as_object()?;
            wanted.iter().all(|(state, count)| found["status"]["pods"][state] == *count).then_some(())
        });
    };
    counted(&json!({"matched": 3, "injected": 3}));

    let broken = json!({"java": {"image": "localhost/otel-webhook-node/broken-java:1"}});
    cluster.instrumentation(NAMESPACE, "default", &broken);
    until("restarts are stopped", LIMIT, || {
        let found = cluster.get(NAMESPACE, &["otelinst", "default"]);
        let mut conditions = found["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|one| one["type"] == "RestartStopped" && one["status"] == "True").then_some(())
    });
    for pod in &before {
        pod.until_ready();
    }
    let restarted = NAMES.map(|name| {
        let found = cluster.get(NAMESPACE, &["deployment", name]);
        !found["spec"]["template"]["metadata"]["annotations"]["otel-webhook/config"].is_null()
    });
    assert_eq!(restarted.iter().filter(|restarted| **restarted).count(), 1, "{restarted:?}");

    // Corrected: what was restarted gets an agent that works.
    cluster.instrumentation(NAMESPACE, "default", &json!({}));
    counted(&json!({"matched": 3, "injected": 3}));
    for name in NAMES {
        cluster.rolled_out(NAMESPACE, name);
    }
}
