//! Init containers that run again in the same volume: the files are the same, and pods come back.

use std::thread;

use otel_webhook_testkit::runner::note;
use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, HOME};
use crate::service::{JAVA, LANGUAGES, Language, NODEJS, PYTHON};
use crate::workload::{DELIVERIES, Files, Running, deployment, difference, files, service, to_the_log};

/// How often init containers run in one volume.
const RUNS: usize = 3;

pub fn java(cluster: &Cluster) {
    copied_again(cluster, JAVA, &json!({"java": {"resources": slow("10m")}}));
}

pub fn nodejs(cluster: &Cluster) {
    copied_again(cluster, NODEJS, &json!({"nodejs": {"resourceRequirements": slow("100m")}}));
}

pub fn python(cluster: &Cluster) {
    copied_again(cluster, PYTHON, &json!({"python": {"resourceRequirements": slow("100m")}}));
}

/// Resources with so little CPU that a copy takes a while.
fn slow(cpu: &str) -> Value {
    json!({"limits": {"cpu": cpu, "memory": "512Mi"}, "requests": {"cpu": cpu, "memory": "64Mi"}})
}

/// The init container of a language runs three times, and after a run that was killed, always to the same files.
/// `slow` are limits with which its end is not missed.
fn copied_again(cluster: &Cluster, language: Language, slow: &Value) {
    let namespace = &format!("again-{}", language.name);
    let volume = &agent(language);
    cluster.namespace(namespace, &json!({}));
    cluster.instrumentation(namespace, "default", &json!({"env": to_the_log()}));
    let pod = Running::create(cluster, namespace, &service("three-times", language, "initContainer"));
    let first = pod.files(volume);
    assert!(!first.is_empty(), "{volume} is empty");
    for _ in 1..RUNS {
        pod.make_again();
        assert_eq!(difference(&pod.files(volume), &first), None);
    }
    pod.delete();

    let mut spec = slow.clone();
    // Something by which it is known.
    spec["env"] = json!([{"name": "OTEL_BSP_SCHEDULE_DELAY", "value": "200"}]);
    cluster.instrumentation(namespace, "default", &spec);
    let mut killed = service("killed", language, "initContainer");
    for container in killed["spec"]["containers"].as_array_mut().into_iter().flatten() {
        // The resources of the Instrumentation are used where they are within those of the target.
        container["resources"] =
            json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "128Mi"}});
    }
    let pod = Running::created(cluster, namespace, &killed);
    let left = killed_half_way(cluster, &pod, volume);
    let missing = first.keys().filter(|name| left.get(*name) != first.get(*name)).count();
    assert!(missing > 0, "it was killed when all was copied");
    note(&format!("killed with {missing} of {} files not as they have to be", first.len()));
    pod.until_ready();
    assert_eq!(difference(&pod.files(volume), &first), None);
    let ended = &pod.get()["status"]["initContainerStatuses"][0];
    assert_eq!(ended["restartCount"], 1, "{ended}");
    pod.delete();
}

/// Kills the init container of this name once it has begun to copy. Returns what it left.
fn killed_half_way(cluster: &Cluster, pod: &Running<'_>, init_container: &str) -> Files {
    let uid = pod.get()["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let node = cluster.node();
    let folder = node.empty_dir(&uid, init_container);
    // Before it copies, since it may not copy for long.
    let id =
        until("the init container is there", || node.container(&pod.namespace, &pod.name, init_container));
    until("the init container copies", || (!files(&folder).is_empty()).then_some(()));
    assert!(node.kill(&id), "it ended before it was killed");
    files(&folder)
}

/// The name of the init container of a language, and of its volume.
fn agent(language: Language) -> String {
    format!("opentelemetry-auto-instrumentation-{}", language.name)
}

/// Deployments of each language by both deliveries, and of what has images that stand in for its agent's.
fn everything(cluster: &Cluster, namespace: &'static str) -> Vec<String> {
    cluster.namespace(namespace, &json!({}));
    cluster.instrumentation(namespace, "default", &json!({"env": to_the_log()}));
    let mut names = Vec::new();
    for language in LANGUAGES {
        for delivery in DELIVERIES {
            let name = format!("{}-{}", language.name, delivery.to_lowercase());
            cluster.apply(&deployment(namespace, &name, 1, service(&name, language, delivery)));
            names.push(name);
        }
    }
    names
}

/// The sandboxes of all injected pods end, as when the node starts again.
pub fn sandboxes(cluster: &Cluster) {
    let names = everything(cluster, "sandboxes");
    let pods: Vec<_> =
        names.iter().flat_map(|name| Running::of_deployment(cluster, "sandboxes", name)).collect();
    let before: Vec<_> = pods.iter().map(Running::get).collect();
    pods.iter().for_each(Running::end_sandbox);
    for (pod, before) in pods.iter().zip(&before) {
        pod.until_ready_again(before);
    }
    note(&format!("{} pods are ready again", pods.len()));
    let ran = cluster.kubectl(&["delete", "namespace", "sandboxes", "--wait=false"]);
    assert!(ran.ok, "{}", ran.stderr);
}

/// All containers of the node end at once, those of the webhook and its controller among them. Pods are created
/// meanwhile.
pub fn all_containers(cluster: &Cluster) {
    const NAMESPACE: &str = "all-containers";
    let names = everything(cluster, NAMESPACE);
    let mut pods: Vec<_> =
        names.iter().flat_map(|name| Running::of_deployment(cluster, NAMESPACE, name)).collect();
    pods.extend(Running::labelled(cluster, HOME, "app.kubernetes.io/name=otel-webhook"));
    let before: Vec<_> = pods.iter().map(Running::get).collect();
    let node = cluster.node();
    let running = node.running();
    thread::scope(|scope| {
        for container in &running {
            scope.spawn(|| node.kill(container));
        }
    });
    drop(node);
    // The API server goes on without the webhook, which does not run.
    let mut missed = service("missed", PYTHON, "imageVolume");
    missed["metadata"]["namespace"] = NAMESPACE.into();
    cluster.apply(&missed);
    for (pod, before) in pods.iter().zip(&before) {
        pod.until_ready_again(before);
    }
    let stored = cluster.get(NAMESPACE, &["pod", "missed"]);
    assert!(stored["metadata"]["labels"]["otel-webhook/injected"].is_null(), "the webhook ran");
    let status = cluster.shell(&format!("otel-webhook status --namespace {NAMESPACE}"));
    let row = status.lines().find(|line| line.contains("pod/missed")).expect("a row of the pod");
    assert!(row.contains("missed") && row.contains("WebhookNotReached"), "{status}");
    until("the controller reports the pod as missed", || {
        let found = cluster.get(NAMESPACE, &["otelinst", "default"]);
        (found["status"]["pods"]["missed"] == 1).then_some(())
    });
    note(&format!("{} containers ended, {} pods are ready again", running.len(), pods.len()));
    let ran = cluster.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]);
    assert!(ran.ok, "{}", ran.stderr);
}
