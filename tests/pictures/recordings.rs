//! Recordings of the terminal with a cluster: the warning of `kubectl apply`, and `otel-webhook status`.

use std::process::Command;

use jiff::Timestamp;
use otel_webhook_testkit::{
    terminal::{Step, recording},
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::{Cluster, LIMIT, template};
use crate::{registration, write};

/// Not that of the dashboard.
const NAMESPACE: &str = "store";

pub fn make(cluster: &Cluster) {
    cluster.instrumented_namespace(NAMESPACE);
    let registered = registration::register_workloads(&cluster.plane, &cluster.webhook, NAMESPACE);
    let misspelt = deployment("ordr");
    let warned = until("the registration is in effect", LIMIT, || {
        let ran = cluster.plane.kubectl_in(&["apply", "--dry-run=server", "-f", "-"], &misspelt.to_string());
        ran.stderr.contains("not found").then(|| ran.stderr + &ran.stdout.replace(" (server dry run)", ""))
    });
    let title = "kubectl apply warns of an Instrumentation that does not exist";
    write("apply-warning.svg", &recording(title, &[Step::new("kubectl apply -f deployment.yaml", &warned)]));
    drop(registered);

    // Pods of the same second would pass for older ones.
    let instrumentation = cluster.get(NAMESPACE, &["otelinst", "default"]);
    let created = instrumentation["metadata"]["creationTimestamp"].as_str().expect("a time");
    let created: Timestamp = created.parse().expect("a time");
    until("the Instrumentation is older", LIMIT, || {
        (Timestamp::now().as_second() > created.as_second() + 1).then_some(())
    });
    let stopped = cluster.webhook.stop();
    cluster.apply(&deployment("true"));
    cluster.pods_of(NAMESPACE, "app=order", 2);
    drop(stopped);
    let kubeconfig = cluster.plane.kubeconfig();
    let output = Command::new(env!("CARGO_BIN_EXE_otel-webhook"))
        .args(["status", "-n", NAMESPACE, "--own-flags", "--webhook-configuration", "otel-webhook"])
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .output()
        .expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("WebhookNotReached"), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let text = text.replace(&format!(" --kubeconfig {}", kubeconfig.display()), "");
    let title = "otel-webhook status shows a Deployment that was created while the webhook was away";
    write("status.svg", &recording(title, &[Step::new("otel-webhook status -n store", &text)]));
}

/// A Deployment that opts in to Java by this value.
fn deployment(value: &str) -> Value {
    let mut template = template("order");
    template["metadata"]["annotations"] = json!({"instrumentation.opentelemetry.io/inject-java": value});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "order", "namespace": NAMESPACE},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "order"}}, "template": template},
    })
}
