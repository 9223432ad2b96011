//! What happens in the cluster while its metrics are read.

use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use super::series::INTERVAL;
use crate::cluster::{Cluster, asking, template};

/// How often metrics are read.
const READINGS: u32 = 90;

/// The namespace in which pods ask for agents.
const SHOP: &str = "shop";

/// Creates pods of several kinds, by turns and in bursts, and calls `read` at each interval.
pub fn live(cluster: &Cluster, mut read: impl FnMut()) {
    cluster.instrumented_namespace(SHOP);
    let began = Instant::now();
    for reading in 0..READINGS {
        read();
        happen(cluster, reading);
        // The queries' engine takes readings to be this far apart.
        thread::sleep((began + INTERVAL * (reading + 1)).saturating_duration_since(Instant::now()));
    }
}

/// What happens after so many readings.
fn happen(cluster: &Cluster, reading: u32) {
    match reading {
        5 => cluster.apply(&deployment("orders", "java", 12)),
        15 => cluster.apply(&deployment("web", "nodejs", 8)),
        30 => cluster.apply(&deployment("stock", "python", 6)),
        // Its pods have the former configuration from now on.
        50 => cluster.instrumentation(SHOP, "default", &json!({"sampler": {"type": "always_off"}})),
        70 => cluster.apply(&deployment("orders", "java", 20)),
        _ => {}
    }
    let burst = if (35..45).contains(&reading) { 6 } else { 2 };
    for number in 0..burst {
        let pod = pod((reading + number) as usize);
        cluster.dry_run(SHOP, &pod);
    }
}

/// One of the pods that are reviewed, by its number.
fn pod(number: usize) -> Value {
    let kinds: [&[(&str, &str)]; 6] = [
        &[("inject-java", "true")],
        &[("inject-nodejs", "true")],
        &[("inject-java", "true"), ("container-names", "ap")],
        &[("inject-python", "true")],
        &[("inject-java", "later")],
        &[("inject-java", "false")],
    ];
    asking("reviewed", kinds[number % kinds.len()])
}

/// A Deployment whose pods ask for the agent of a language. Those with Python do not consent to restarts.
fn deployment(name: &str, language: &str, replicas: usize) -> Value {
    let consent = if language == "python" { "never" } else { "rollout" };
    let mut template = template(name);
    template["metadata"] = json!({
        "labels": {"app": name},
        "annotations": {(format!("instrumentation.opentelemetry.io/inject-{language}")): "true"},
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": SHOP, "annotations": {"otel-webhook/restart": consent}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    })
}
