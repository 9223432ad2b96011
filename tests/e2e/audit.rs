//! What the API server's audit log says of webhooks and of who asks for what.

use std::fs;

use serde_json::Value;

use crate::cluster::{Cluster, LIMIT};
use crate::control_plane::until;

/// Every entry so far.
pub fn entries(cluster: &Cluster) -> Vec<Value> {
    let text = fs::read_to_string(cluster.plane.audit_log()).expect("an audit log");
    // The last line may be on its way.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The annotations of the entry for the creation of a pod.
pub fn of_creation(cluster: &Cluster, namespace: &str, pod: &str) -> Value {
    until(&format!("an audit entry for the creation of {namespace}/{pod}"), LIMIT, || {
        let mut entries = entries(cluster).into_iter();
        let found = entries.find(|entry| {
            let object = &entry["objectRef"];
            entry["verb"] == "create"
                && object["resource"] == "pods"
                && object["namespace"] == namespace
                && object["name"] == pod
                && !entry["requestURI"].as_str().unwrap_or_default().contains("dryRun")
        });
        found.map(|entry| entry["annotations"].clone())
    })
}

/// The webhook's own word on a pod: languages, containers and codes.
pub fn decision(cluster: &Cluster, namespace: &str, pod: &str) -> String {
    let annotations = of_creation(cluster, namespace, pod);
    annotations["pods.otel-webhook.io/injection"].as_str().unwrap_or_default().to_owned()
}
