//! What telemetry of pods is sent to: Collectors and Prometheus, each a pod with a Service of its name.

use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use crate::cluster::Cluster;

const PROMETHEUS: &str = "localhost/otel-webhook-node/prometheus:1";

/// Where each may write.
pub const DATA: &str = "data";

/// Starts a Collector, and waits until it is ready. Gives the UID of its pod.
pub fn collector(cluster: &Cluster, namespace: &str, configuration: &Value, ports: &[u16]) -> String {
    let args = json!([format!("--config=yaml:{configuration}")]);
    start(cluster, namespace, "collector", &collectors_image(), args, ports, "Everything is ready")
}

/// Starts a Prometheus that takes OTLP and scrapes the Collector, and waits until it is ready.
pub fn prometheus(cluster: &Cluster, namespace: &str) {
    let target = format!("collector.{namespace}.svc:8889");
    let scraped =
        json!({"job_name": "collector", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]});
    let file = json!({"scrape_configs": [scraped]}).to_string();
    cluster.apply(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prometheus", "namespace": namespace},
        "data": {"prometheus.yml": file},
    }));
    let args = json!([
        "--config.file=/etc/prometheus/prometheus.yml",
        "--storage.tsdb.path=/data/series",
        "--web.enable-otlp-receiver",
    ]);
    start(cluster, namespace, "prometheus", PROMETHEUS, args, &[9090], "Server is ready");
}

fn start(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    image: &str,
    args: Value,
    ports: &[u16],
    ready: &str,
) -> String {
    let labels = json!({"app": name});
    let mounts = json!([{"name": DATA, "mountPath": "/data"}, {"name": "settings", "mountPath": format!("/etc/{name}")}]);
    let volumes = json!([{"name": DATA, "emptyDir": {}}, {"name": "settings", "configMap": {"name": name, "optional": true}}]);
    cluster.apply(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 1, "volumes": volumes,
            "containers": [{"name": name, "image": image, "args": args, "volumeMounts": mounts}],
        },
    }));
    let ports: Vec<_> =
        ports.iter().map(|port| json!({"name": format!("port-{port}"), "port": port})).collect();
    cluster.apply(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": labels, "ports": ports},
    }));
    until(&format!("{name} is ready"), || {
        let log = cluster.kubectl(&["logs", name, "--namespace", namespace]);
        log.stdout.contains(ready).then_some(())
    });
    let pod = cluster.get(namespace, &["pod", name]);
    pod["metadata"]["uid"].as_str().expect("a UID").to_owned()
}

/// As the first guide names it.
fn collectors_image() -> String {
    let guide = include_str!("../../examples/first-service/backend.yaml");
    let mut images = guide.lines().filter_map(|line| line.trim().strip_prefix("image: "));
    images.find(|image| image.contains("/opentelemetry-collector:")).expect("a Collector").to_owned()
}
