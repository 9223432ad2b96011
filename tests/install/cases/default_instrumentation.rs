//! An Instrumentation for everybody, made by the release.

use serde_json::json;

use crate::cluster::Cluster;
use crate::helm::Release;
use crate::pod::{Pod, Ports};

pub fn comes_along(cluster: &Cluster) {
    let ports = Ports::free();
    let release = Release::new(cluster, "helm3", "default-release");
    let values = json!({
        "certificates": {"extraNames": ["localhost"]},
        "defaultInstrumentation": {
            "enabled": true,
            "spec": {"exporter": {"endpoint": "http://collector.observability:4317"}},
        },
    });
    release.install(&super::values(ports, values));
    let _pod = Pod::start(cluster, &release.namespace, ports);

    cluster.namespace("default-apps");
    cluster.until_injected("default-apps");

    let pod = cluster.create_java("default-apps", "app");
    assert_eq!(pod.variable("app", "OTEL_EXPORTER_OTLP_ENDPOINT"), "http://collector.observability:4317");
}
