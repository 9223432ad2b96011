//! Real agents, by both deliveries.

use serde_json::json;

use crate::cluster::Cluster;
use crate::service::{JAVA, Language, NODEJS, PYTHON};
use crate::workload::{DELIVERIES, Running, service, span, to_the_log};

pub fn java(cluster: &Cluster) {
    delivered(cluster, JAVA);
}

pub fn nodejs(cluster: &Cluster) {
    delivered(cluster, NODEJS);
}

pub fn python(cluster: &Cluster) {
    delivered(cluster, PYTHON);
}

/// The service answers, and its agent writes a span of that to the log.
fn delivered(cluster: &Cluster, language: Language) {
    let namespace = &format!("agents-{}", language.name);
    cluster.namespace(namespace, &json!({}));
    cluster.instrumentation(namespace, "default", &json!({"env": to_the_log()}));
    for delivery in DELIVERIES {
        let name = delivery.to_lowercase();
        let pod = Running::create(cluster, namespace, &service(&name, language, delivery));
        let init_containers = pod.get()["spec"]["initContainers"].as_array().map_or(0, Vec::len);
        assert_eq!(init_containers, usize::from(delivery == "initContainer"));
        pod.log_with(span(language));
        pod.delete();
    }
}
