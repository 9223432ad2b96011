//! Pods with thousands of owners: the API server is asked for few of them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use otel_webhook_testkit::{cluster::created::Created, runner::note};
use serde_json::{Value, json};

use crate::audit;
use crate::cluster::{Cluster, java};

const OWNERS: usize = 10_000;

/// How many such pods are created at the same time.
const AT_ONCE: usize = 4;

/// Three owners and the namespace, for each pod.
const MOST_GETS: usize = 4;

const MOST_DESCRIPTORS: usize = 100;

/// How often descriptors are counted.
const PAUSE: Duration = Duration::from_millis(2);

/// In a cluster of its own: its controllers would look for the owners, too, and remove the pods.
pub fn asked_for(_: &Cluster) {
    let cluster = &Cluster::without_controllers();
    let namespace = "many-owners";
    cluster.instrumented_namespace(namespace);
    let spec = json!({"resource": {"addK8sUIDAttributes": true}});
    cluster.instrumentation(namespace, "default", &spec);
    let with_uid = |pod: &Created| pod.variables("app").contains(&"OTEL_RESOURCE_ATTRIBUTES_POD_UID");
    cluster.create_when("UIDs are asked for", namespace, &java("first"), with_uid);

    let ended = AtomicBool::new(false);
    let (times, descriptors) = thread::scope(|scope| {
        let counting = scope.spawn(|| most_descriptors(cluster, &ended));
        let create = |pod| scope.spawn(move || create(cluster, namespace, pod));
        let creating: Vec<_> = (0..AT_ONCE).map(create).collect();
        let created: Vec<_> = creating.into_iter().map(thread::ScopedJoinHandle::join).collect();
        // Also after a failure, or the scope would wait for ever.
        ended.store(true, Relaxed);
        let times: Vec<String> = created.into_iter().map(|time| time.expect("it is created")).collect();
        (times, counting.join().expect("no panic"))
    });
    let gets = audit::gets(cluster, namespace);
    note(&format!(
        "{AT_ONCE} pods with {OWNERS} owners each: {} requests, at most {descriptors} descriptors, {times:?} for two reviews of each",
        gets.len()
    ));
    assert!(!gets.is_empty() && gets.len() <= AT_ONCE * MOST_GETS, "{gets:?}");
    assert!(descriptors <= MOST_DESCRIPTORS, "{descriptors} descriptors");
}

fn most_descriptors(cluster: &Cluster, ended: &AtomicBool) -> usize {
    let mut most = 0;
    while !ended.load(Relaxed) {
        most = most.max(cluster.webhook.descriptors());
        thread::sleep(PAUSE);
    }
    most
}

/// Creates a pod of owners that no other pod has. Gives how long the API server waited for webhooks, in both of its calls.
fn create(cluster: &Cluster, namespace: &str, number: usize) -> String {
    let mut pod = java(&format!("owned-{number}"));
    // Short, so that the pod may still grow: the review has each of them twice, in `managedFields` as well.
    let owner = |owner: usize| {
        let unique = format!("{number}-{owner}");
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": unique, "uid": unique})
    };
    pod["metadata"]["ownerReferences"] = (0..OWNERS).map(owner).collect();
    let created = cluster.create(namespace, &pod);
    assert!(created.is_injected(), "{}", created.status());
    assert_eq!(created.pod["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(OWNERS));
    let found: Value = cluster.get(namespace, &["pod", created.name()]);
    assert_eq!(found["metadata"]["ownerReferences"], pod["metadata"]["ownerReferences"], "what is stored");
    let audited = audit::of_creation(cluster, namespace, created.name());
    let time = audited["apiserver.latency.k8s.io/mutating-webhook"].as_str();
    time.expect("a webhook was called").to_owned()
}
