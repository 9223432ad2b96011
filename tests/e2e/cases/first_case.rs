//! The case this product was started for.

use otel_webhook_testkit::{cluster::created::Created, objects::items, until::until};
use serde_json::{Value, json};

use crate::cluster::{Cluster, java};

const MANIFESTS: &str = include_str!("../../data/first-case.yaml");
const EXPECTED: &str = include_str!("../first-case-pod.yaml");

pub fn deployment(cluster: &Cluster) {
    let (before, deployment) = MANIFESTS.rsplit_once("\n---\n").expect("documents");
    cluster.namespace("test", &[]);
    cluster.plane.apply(before);
    let mut probe = java("probe");
    probe["metadata"]["labels"]["app"] = "order".into();
    until("the Instrumentation is known", || cluster.dry_run("test", &probe).is_injected().then_some(()));
    cluster.plane.apply(deployment);

    let pod = &cluster.pods_of("test", "app=order", 1)[0];

    let owner = items(&pod.pod["metadata"]["ownerReferences"]).next().expect("an owner");
    let owner = owner["name"].as_str().expect("a name");
    let expected: Value = serde_saphyr::from_str(&EXPECTED.replace("REPLICA_SET", owner)).expect("YAML");
    let found = added(pod);
    assert_eq!(found, expected, "{found:#}");
    stamp_and_log(cluster, pod, owner);
}

/// What injection adds. The API server adds the volume of the service account and its mounts, and defaults.
fn added(pod: &Created) -> Value {
    let ours = |list: &Value| -> Value {
        items(list)
            .filter(|one| !one["name"].as_str().unwrap_or_default().starts_with("kube-api-access"))
            .cloned()
            .collect()
    };
    let init = items(&pod.pod["spec"]["initContainers"]).map(|container| {
        json!({
            "name": container["name"], "image": container["image"], "command": container["command"],
            "volumeMounts": ours(&container["volumeMounts"]), "resources": container["resources"],
        })
    });
    let order = pod.container("order");
    json!({
        "initContainers": init.collect::<Value>(), "volumes": ours(&pod.pod["spec"]["volumes"]),
        "mounts": ours(&order["volumeMounts"]), "env": order["env"],
    })
}

/// The product reports the same in its annotation, its label and its log.
fn stamp_and_log(cluster: &Cluster, pod: &Created, owner: &str) {
    assert_eq!(pod.pod["metadata"]["labels"]["otel-webhook/injected"], "true");
    let status = pod.status();
    assert!(status.contains("Injected") && status.contains("test/instrumentation-test-order"), "{status}");
    assert!(pod.message().starts_with("java in order: "), "{}", pod.message());
    let log = cluster.webhook.log();
    let line =
        log.iter().find(|line| line["owner"] == format!("ReplicaSet/{owner}")).expect("a line for the owner");
    assert_eq!(line["namespace"], "test");
    assert_eq!(line["findings"], "java/order=Injected");
    assert_eq!(line["warned"], "java/order=PortContradictsProtocol");
}
