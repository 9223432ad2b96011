//! Honest workloads are restarted while a tenant and a network do all at once what other cases do one at a time.

use std::{
    env, thread,
    time::{Duration, Instant},
};

use otel_webhook_testkit::{
    cluster::{
        client::{Objects, block_on},
        created::Created,
        proxy::Proxy,
    },
    objects::items,
    runner::note,
    until::until,
};
use serde_json::{Value, json};

use super::{
    extremes::{MEMORY_OF_CONTROLLER, large_variables},
    restarts::{CRASH, SHOP, change, consenting, create, shop, using_shop},
};
use crate::{
    cluster::{Cluster, asking},
    controller::{Controller, deployment},
};

/// For how long changes go on, in seconds; without it, there is one change.
const LENGTH: &str = "OTEL_WEBHOOK_HOSTILE_SECONDS";

/// The hostile tenant's namespace.
const MALLORY: &str = "mallory";

/// The other namespaces, whose pods use the Instrumentation of `SHOP`.
const HONEST: [&str; 3] = ["honest-a", "honest-b", "honest-c"];

/// The Deployments of each honest namespace.
const SERVICES: [&str; 2] = ["order", "stock"];

const LARGE_PODS: usize = 40;
const LARGE_DEPLOYMENTS: usize = 30;

/// Pods that state an owner in another namespace.
const FORGED: usize = 40;

/// Instrumentations with a long annotation, each with a workload.
const LEDGER: usize = 5;

/// How long connections of the controller are frozen in each round.
const FROZEN: Duration = Duration::from_secs(5);

/// Each change restarts all honest workloads once; a Deployment that says `never` keeps its pods, and the memory is bounded.
pub fn at_once(_: &Cluster) {
    let cluster = &Cluster::with_node(&[CRASH.as_ref()]);
    shop(cluster, &HONEST);
    for namespace in HONEST.into_iter().chain([SHOP]) {
        for name in SERVICES {
            create(cluster, &consenting(using_shop(deployment(namespace, name, 2)), "rollout"));
        }
    }
    let victims = attack(cluster);
    let controller = Controller::with_restarts_and(cluster, &["--restart-per-minute=120"]);
    let (proxy, proxied) = Proxy::before(controller.kubeconfig());
    let controller = controller.connecting_by(proxied);
    controller.start();
    let length = env::var(LENGTH).map_or(0, |seconds| seconds.parse().expect("seconds"));
    let began = Instant::now();
    let mut times = Vec::new();
    for round in 1.. {
        forge(cluster, round);
        let changed = Instant::now();
        let endpoint = format!("http://collector-{round}:4317");
        change(cluster, &endpoint);
        for number in 0..LEDGER {
            ledger(cluster, number, round);
        }
        proxy.freeze();
        thread::sleep(FROZEN);
        proxy.open();
        for namespace in HONEST.into_iter().chain([SHOP]) {
            for name in SERVICES {
                restarted_once(cluster, namespace, name, &endpoint, round);
            }
        }
        times.push(changed.elapsed().as_secs());
        if began.elapsed().as_secs() >= length {
            break;
        }
    }
    assert_eq!(uids(cluster, "victim"), victims, "pods of a workload that says never are as they were");
    let peak = controller.peak();
    controller.stop();
    note(&format!(
        "honest workloads were restarted {times:?} s after each change; at most {peak:.1} MB of memory"
    ));
    assert!(peak < MEMORY_OF_CONTROLLER, "at most {peak} MB of memory were used");
}

/// Makes what a tenant may make in its namespace. Returns the UIDs of pods that nobody may evict.
fn attack(cluster: &Cluster) -> Vec<String> {
    cluster.namespace(MALLORY, &[]);
    // Two Deployments whose pods have each other's labels.
    let shared = json!({"matchLabels": {"tier": "shared"}});
    for (name, consent) in [("victim", "never"), ("greedy", "evict")] {
        let mut overlapping = consenting(using_shop(deployment(MALLORY, name, 3)), consent);
        overlapping["spec"]["selector"] = shared.clone();
        overlapping["spec"]["template"]["metadata"]["labels"]["tier"] = "shared".into();
        create(cluster, &overlapping);
    }
    // Its rollout never ends.
    let mut slow = consenting(using_shop(deployment(MALLORY, "slow", 2)), "rollout");
    slow["spec"]["minReadySeconds"] = 2_147_483_646.into();
    slow["spec"]["progressDeadlineSeconds"] = i32::MAX.into();
    cluster.apply(&slow);
    let mut failing = consenting(using_shop(deployment(MALLORY, "failing", 2)), "rollout");
    failing["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"name": "CRASH", "value": "yes"}]);
    cluster.apply(&failing);
    for number in 0..LEDGER {
        ledger(cluster, number, 0);
        let mut user = consenting(deployment(MALLORY, &format!("ledger-{number}"), 1), "rollout");
        let annotations = &mut user["spec"]["template"]["metadata"]["annotations"];
        annotations["instrumentation.opentelemetry.io/inject-java"] = format!("ledger-{number}").into();
        cluster.apply(&user);
    }
    let pods = (0..LARGE_PODS).map(|number| {
        let mut pod = using(&format!("large-{number}"));
        pod["spec"]["containers"][0]["env"] = large_variables(number);
        // It stays pending.
        pod["spec"]["nodeSelector"] = json!({"is": "nowhere"});
        pod
    });
    let deployments = (0..LARGE_DEPLOYMENTS).map(|number| {
        let mut deployment = using_shop(deployment(MALLORY, &format!("large-{number}"), 0));
        deployment["spec"]["template"]["spec"]["containers"][0]["env"] = large_variables(number);
        deployment
    });
    create_all(cluster, pods.chain(deployments));
    uids(cluster, "victim")
}

/// A pod of the tenant that uses the Instrumentation of the others.
fn using(name: &str) -> Value {
    let mut pod = asking(name, &[("inject-java", &format!("{SHOP}/default"))]);
    pod["metadata"]["namespace"] = MALLORY.into();
    pod
}

fn create_all(cluster: &Cluster, objects: impl Iterator<Item = Value>) {
    block_on(async { Objects::connect(cluster.plane.kubeconfig()).await.create_all(objects).await });
}

/// Pods that say that a ReplicaSet of another namespace is their controller. The garbage collector deletes them later.
fn forge(cluster: &Cluster, round: usize) {
    let owners = cluster.get(HONEST[0], &["replicasets", "--selector=app=order"]);
    let owner = items(&owners["items"]).next().expect("a ReplicaSet")["metadata"].clone();
    let pods = (0..FORGED).map(|number| {
        let mut pod = using(&format!("forged-{round}-{number}"));
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner["name"],
            "uid": owner["uid"], "controller": true}]);
        pod
    });
    create_all(cluster, pods);
}

/// Makes an Instrumentation with as long an annotation as the API server takes, or changes it.
fn ledger(cluster: &Cluster, number: usize, round: usize) {
    let name = format!("ledger-{number}");
    cluster.apply(&json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": name, "namespace": MALLORY,
            "annotations": {"otel-webhook/resume-restart": format!("{round}-{}", "a".repeat(250 * 1024))}},
        "spec": {"exporter": {"endpoint": format!("http://mallory-{round}:4317")}},
    }));
}

/// The UIDs of the pods of a workload of the tenant, in order.
fn uids(cluster: &Cluster, app: &str) -> Vec<String> {
    let pods = cluster.get(MALLORY, &["pods", "--selector", &format!("app={app}")]);
    let uid = |pod: &Value| pod["metadata"]["uid"].as_str().expect("a UID").to_owned();
    let mut uids: Vec<_> = items(&pods["items"]).map(uid).collect();
    uids.sort();
    assert!(!uids.is_empty());
    uids
}

/// Waits until all pods of a Deployment have the endpoint, and are ready. It has had a template for each round.
fn restarted_once(cluster: &Cluster, namespace: &str, name: &str, endpoint: &str, round: usize) {
    let found = until(&format!("{namespace}/{name} is restarted"), || {
        let found = cluster.get(namespace, &["deployment", name]);
        let status = &found["status"];
        let is_complete = status["observedGeneration"] == found["metadata"]["generation"]
            && [&status["updatedReplicas"], &status["replicas"], &status["availableReplicas"]]
                .iter()
                .all(|one| **one == 2);
        let pods = cluster.get(namespace, &["pods", "--selector", &format!("app={name}")]);
        let has_endpoint = |pod: &Value| {
            Created::found(pod.clone()).variable("app", "OTEL_EXPORTER_OTLP_ENDPOINT") == endpoint
        };
        (is_complete && items(&pods["items"]).all(has_endpoint)).then_some(found)
    });
    let revision = &found["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
    assert_eq!(revision, &json!((round + 1).to_string()), "{namespace}/{name}");
}
