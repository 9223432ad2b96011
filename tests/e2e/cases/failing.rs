//! Pods that fail because of what injection added, with statuses as kubelets write them.

use std::time::Instant;

use otel_webhook_testkit::{cluster::created::AGENT, objects::items, runner, until::until};
use serde_json::{Value, json};

use crate::{
    audit,
    cluster::Cluster,
    controller::{self, ACCOUNT, Controller, deployment},
    program::run,
};

const SHOP: &str = "failing-shop";
const METRIC: &str = "otel_webhook_pods_failing{language=\"java\"}";
const PULL: &str = "Back-off pulling image \"own/java:1\": ErrImagePull: not found";

/// Writes the status of a pod, as its kubelet does.
fn write(cluster: &Cluster, pod: &str, status: &Value) {
    let patch = json!({"status": status}).to_string();
    let args = ["patch", "pod", pod, "--namespace", SHOP, "--subresource=status", "--type=merge", "--patch"];
    cluster.run(&[&args[..], &[&patch]].concat());
}

fn waiting(list: &str, container: &str, reason: &str, message: &str) -> Value {
    json!({"phase": "Pending", list: [{"name": container, "image": "i", "imageID": "", "ready": false,
        "restartCount": 5, "state": {"waiting": {"reason": reason, "message": message}}}]})
}

fn ready(container: &str) -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "initContainerStatuses": [],
        "containerStatuses": [{"name": container, "image": "i", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"running": {}}}]})
}

fn names(cluster: &Cluster, label: &str, count: usize) -> Vec<String> {
    let pods = cluster.pods_of(SHOP, label, count);
    pods.iter().map(|pod| pod.name().to_owned()).collect()
}

/// A failing pod is counted in addition to its state, and no longer once it has recovered.
pub fn counted(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    cluster.apply(&deployment(SHOP, "images", 3));
    let pods = names(cluster, "app=images", 3);
    let controller = Controller::new(cluster);
    controller.start();
    controller.expect(SHOP, "default", &json!({"matched": 3, "injected": 3}));
    let slow = [
        ("initContainerStatuses", AGENT, "PodInitializing"),
        ("containerStatuses", "app", "ContainerCreating"),
    ];
    for (list, container, reason) in slow {
        write(cluster, &pods[1], &waiting(list, container, reason, ""));
    }
    write(cluster, &pods[0], &waiting("initContainerStatuses", AGENT, "ImagePullBackOff", PULL));
    let written = Instant::now();
    let note = cluster.events(SHOP, "images", "Failing").remove(0);
    runner::note(&format!("the Event comes {:?} after the failure", written.elapsed()));
    let parts = [
        "java: 1 pods fail",
        &pods[0],
        AGENT,
        PULL,
        "correct the image in the Instrumentation",
        "failing-shop/default",
    ];
    assert!(parts.iter().all(|part| note.contains(part)), "{note}");
    let found = controller.expect(SHOP, "default", &json!({"matched": 3, "injected": 3, "failing": 1}));
    let worst = json!([{"namespace": SHOP, "kind": "Deployment", "name": "images", "stale": 0, "missed": 0,
        "failing": 1, "reason": "ImagePullBackOff"}]);
    assert_eq!(found["status"]["workloads"], worst);
    assert_eq!(controller.metric(METRIC), Some(1));
    let table = cluster.plane.kubectl(&["get", "otelinst", "--namespace", SHOP]).stdout;
    assert!(table.contains("FAILING"), "{table}");
    reported_by_commands(cluster, &pods[0]);

    for pod in &pods {
        write(cluster, pod, &ready("app"));
    }
    controller.expect(SHOP, "default", &json!({"matched": 3, "injected": 3}));
    assert_eq!(controller.metric(METRIC), Some(0));
    let reads = || audit::count(cluster, ACCOUNT, "get", "pods");
    until("each pod was read since", || (reads() >= pods.len()).then_some(()));
    controller.stop();
    audit::asked_only_for(cluster, ACCOUNT, &controller::roles());
}

/// The failing pod of the Deployment is found by the commands, with the kubelet's message and the remedy.
fn reported_by_commands(cluster: &Cluster, pod: &str) {
    // The webhook of these tests runs outside of the cluster.
    let status = run(&cluster.plane, "status", &["-n", SHOP, "--own-flags", "--strict"]);
    assert_eq!(status.code, Some(1), "{status:?}");
    let [failure] = &items(&status.found[0]["workloads"][0]["failures"]).collect::<Vec<_>>()[..] else {
        panic!("{status:?}")
    };
    assert_eq!(
        (&failure["code"], &failure["kubelet"], &failure["pod"]),
        (&"ImagePullBackOff".into(), &PULL.into(), &pod.into())
    );
    let check = run(&cluster.plane, "check", &["-n", SHOP, "--own-flags"]);
    let failing = check.found.iter().find(|result| result["code"] == "PodsFailing").expect("a result");
    let message = failing["message"].as_str().expect("a message");
    assert!(message.starts_with("1 of 3 pods fail: ImagePullBackOff") && message.contains(PULL), "{message}");
    let explain = run(&cluster.plane, "explain", &["deployment/images", "-n", SHOP, "--own-flags"]);
    let failing = &explain.found[0]["failing"][0];
    assert_eq!((&failing["kubelet"], &failing["pod"]), (&PULL.into(), &pod.into()), "{explain:?}");
    let remedy = failing["remedy"].as_str().expect("a remedy");
    assert!(remedy.starts_with("correct the image in the Instrumentation"), "{remedy}");
    assert!(failing["log"].is_null(), "it has not run: {failing}");
}

/// A corrected Instrumentation mends a workload that consents, although its rollout has never been complete.
pub fn mended(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    let mut consenting = deployment(SHOP, "images", 2);
    consenting["metadata"]["annotations"] = json!({"otel-webhook/restart": "rollout"});
    cluster.apply(&consenting);
    let pods = names(cluster, "app=images", 2);
    let controller = Controller::with_restarts(cluster);
    controller.start();
    for pod in &pods {
        write(cluster, pod, &waiting("initContainerStatuses", AGENT, "ErrImagePull", PULL));
    }
    controller.expect(SHOP, "default", &json!({"matched": 2, "injected": 2, "failing": 2}));
    cluster.instrumentation(SHOP, "default", &json!({"java": {"image": "registry.example.com/java:2"}}));
    until("its template has the new configuration", || {
        let found = cluster.get(SHOP, &["deployment", "images"]);
        let annotations = &found["spec"]["template"]["metadata"]["annotations"];
        annotations["otel-webhook/config"]
            .as_str()
            .map(|config| assert!(config.starts_with("java="), "{config}"))
    });
    controller.stop();
}
