//! Pods come before agents, and none of many goes without.

use std::thread;

use otel_webhook_testkit::{cluster::created::Created, objects::items};
use serde_json::{Value, json};

use crate::audit;
use crate::cluster::{Cluster, java};

pub fn stopped(cluster: &Cluster) {
    let namespace = "stopped";
    cluster.instrumented_namespace(namespace);

    let stopped = cluster.webhook.stop();
    let pod = cluster.create(namespace, &java("alone"));
    assert!(pod.is_untouched(), "{}", pod.pod);
    // The API server says why: it called, nobody answered, and the policy is to ignore that.
    let audited = audit::of_creation(cluster, namespace, "alone");
    // Its place among the webhooks depends on those of other cases.
    let failed = "failed-open.mutation.webhook.admission.k8s.io/round_0_index_";
    let mut entries = audited.as_object().expect("annotations").iter();
    let is_named = entries.any(|(key, value)| key.starts_with(failed) && value == "pods.otel-webhook.io");
    assert!(is_named, "{audited}");
    drop(stopped);

    let pod = cluster.create(namespace, &java("again"));
    assert!(pod.is_injected(), "{}", pod.pod);
}

pub fn many(cluster: &Cluster) {
    let namespace = "many";
    cluster.instrumented_namespace(namespace);
    let lists = (0..5).map(|list| {
        let pods: Vec<Value> = (0..10).map(|pod| java(&format!("pod-{list}-{pod}"))).collect();
        json!({"apiVersion": "v1", "kind": "List", "items": pods}).to_string()
    });
    let plane = &cluster.plane;
    thread::scope(|scope| {
        let apply = |list: String| {
            scope.spawn(move || {
                plane.kubectl_in(&["apply", "--namespace", namespace, "--filename", "-"], &list)
            })
        };
        let running: Vec<_> = lists.map(apply).collect();
        for one in running {
            let ran = one.join().expect("no panic");
            assert!(ran.ok && ran.stderr.is_empty(), "kubectl apply failed: {}", ran.stderr);
        }
    });
    let list = cluster.get(namespace, &["pods"]);
    let pods: Vec<_> = items(&list["items"]).cloned().map(Created::found).collect();
    assert_eq!(pods.len(), 50);
    for pod in &pods {
        assert!(pod.is_injected(), "not injected: {}", pod.name());
    }
}
