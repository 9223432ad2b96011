//! Namespaces and pods that allow little, and extensions.

use serde_json::json;

use crate::cluster::Cluster;
use crate::service::{JAVA, LANGUAGES, image};
use crate::workload::{DELIVERIES, Running, restricted, service, span, to_the_log};

/// Read-only root file systems, `runAsNonRoot` and `fsGroup`, where Pod Security enforces `restricted`.
pub fn restricted_pods(cluster: &Cluster) {
    const NAMESPACE: &str = "restricted";
    cluster.namespace(NAMESPACE, &json!({"pod-security.kubernetes.io/enforce": "restricted"}));
    cluster.instrumentation(NAMESPACE, "default", &json!({"env": to_the_log()}));
    for delivery in DELIVERIES {
        let create = |language: crate::service::Language| {
            let name = format!("{}-{}", language.name, delivery.to_lowercase());
            Running::created(cluster, NAMESPACE, &restricted(service(&name, language, delivery)))
        };
        for (pod, language) in LANGUAGES.map(|language| (create(language), language)) {
            pod.until_ready();
            pod.log_with(span(language));
            pod.delete();
        }
    }
}

/// An extension of the Java agent marks each span.
pub fn extension(cluster: &Cluster) {
    const NAMESPACE: &str = "extension";
    cluster.namespace(NAMESPACE, &json!({}));
    let extensions = json!([{"image": image("extension"), "dir": "/extensions"}]);
    cluster.instrumentation(
        NAMESPACE,
        "default",
        &json!({"env": to_the_log(), "java": {"extensions": extensions}}),
    );
    for delivery in DELIVERIES {
        let pod = Running::create(cluster, NAMESPACE, &service(&delivery.to_lowercase(), JAVA, delivery));
        pod.log_with("marked.by=extension");
        pod.delete();
    }
}
