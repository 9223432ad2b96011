//! As much as the API server stores, or a user may send: a pod that is accepted without injection is accepted with it
//! (D33), the API server is asked for few of many owners, and the webhook starts within the memory of its container.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use otel_webhook_testkit::{
    cluster::{
        client::{Objects, block_on},
        control_plane::ControlPlane,
        created::Created,
        manifests::{deployment, instrumentation},
    },
    load::process,
    runner::note,
    until::until,
};
use serde_json::{Value, json};

use crate::audit;
use crate::cluster::{Cluster, asking, java};
use crate::controller::Controller;
use crate::registration;
use crate::webhook::Webhook;

/// As many containers as the API server takes in one pod, about.
const MOST_CONTAINERS: usize = 2400;

/// In its own cluster, since every webhook would list the Instrumentations.
pub fn accepted(_: &Cluster) {
    let cluster = Cluster::without_controllers();
    fifty_kilobytes(&cluster);
    many_containers(&cluster);
    many_variables(&cluster);
    megabytes(&cluster);
}

/// 40 containers, and an Instrumentation of 53 KB.
fn fifty_kilobytes(cluster: &Cluster) {
    let namespace = "fifty-kilobytes";
    cluster.instrumented_namespace(namespace);
    stored_instrumentation(cluster, namespace, &long(53_000));
    let sentence = "more than 256Ki would be added; the maximum is 4 times the pod, or 256Ki";
    skipped(cluster, namespace, &crowd(40, 40), sentence);
    injected(cluster, namespace, &crowd(40, 4));
}

/// 2,400 containers, of which as many are injected as the pod can grow.
fn many_containers(cluster: &Cluster) {
    let namespace = "many-containers";
    cluster.instrumented_namespace(namespace);
    let sentence = "and would have more than 1536Ki (--max-pod-size)";
    skipped(cluster, namespace, &crowd(MOST_CONTAINERS, MOST_CONTAINERS), sentence);
    let most = most_that_are_injected(cluster, namespace, MOST_CONTAINERS);
    note(&format!("of {MOST_CONTAINERS} containers {most} are injected at most"));
    injected(cluster, namespace, &crowd(MOST_CONTAINERS, most));
    skipped(cluster, namespace, &crowd(MOST_CONTAINERS, most + 1), sentence);
}

/// Variables as short as they can be, for which an estimate of the size is most wrong.
fn many_variables(cluster: &Cluster) {
    const CONTAINERS: usize = 1200;
    let namespace = "many-variables";
    cluster.instrumented_namespace(namespace);
    let env: Value = (0..200).map(|number| json!({"name": format!("A{number}")})).collect();
    stored_instrumentation(cluster, namespace, &json!({"env": env}));
    let most = most_that_are_injected(cluster, namespace, CONTAINERS);
    note(&format!("of {CONTAINERS} containers {most} get 200 variables at most"));
    injected(cluster, namespace, &crowd(CONTAINERS, most));
    skipped(cluster, namespace, &crowd(CONTAINERS, most + 1), "the pod has ");
}

/// Instrumentations of 1 MB and 1.3 MB, which are not used unless a flag permits it.
fn megabytes(cluster: &Cluster) {
    let namespace = "megabytes";
    cluster.instrumented_namespace(namespace);
    stored_instrumentation(cluster, namespace, &long(1_300_000));
    let not_used = "its JSON has 1.3Mi, and the maximum is 128Ki (--max-instrumentation-size)";
    let pod = crowd(1, 1);
    let created = skipped_because(cluster, namespace, &pod, "InstrumentationInvalid", not_used);
    assert_eq!(cluster.webhook.metric("otel_webhook_instrumentations_too_large"), 1, "{created:?}");

    let flags = ["--max-instrumentation-size=2Mi", "--max-instrumentations-total=8Mi"];
    let raised = cluster.webhook.restart_with(&flags);
    assert_eq!(cluster.webhook.metric("otel_webhook_instrumentations_too_large"), 0);
    skipped(cluster, namespace, &pod, "more than 256Ki would be added");
    skipped(cluster, namespace, &heavy(150_000), "would be added; the maximum is 4 times the pod");
    skipped(cluster, namespace, &heavy(400_000), "and would have more than 1536Ki (--max-pod-size)");
    stored_instrumentation(cluster, namespace, &long(1_000_000));
    injected(cluster, namespace, &heavy(300_000));
    drop(raised);

    // What the maximum is for: a dry run does not show it.
    let _raised = cluster.webhook.restart_with(&[&flags[..], &["--max-pod-size=4Mi"]].concat());
    let args = ["create", "--namespace", namespace, "--filename", "-"];
    let ran = cluster.plane.kubectl_in(&args, &heavy(700_000).to_string());
    assert!(!ran.ok && ran.stderr.contains("request is too large"), "{}", ran.stderr);
}

/// The most containers of a pod that can be injected.
fn most_that_are_injected(cluster: &Cluster, namespace: &str, containers: usize) -> usize {
    let named: Vec<usize> = (1..=containers).collect();
    let is_injected = |named: &usize| cluster.dry_run(namespace, &crowd(containers, *named)).is_injected();
    let most = named.partition_point(is_injected);
    assert!((1..containers).contains(&most), "{most} of {containers}");
    most
}

/// The pod is stored as it is, and says why.
fn skipped(cluster: &Cluster, namespace: &str, pod: &Value, sentence: &str) -> Created {
    skipped_because(cluster, namespace, pod, "PodTooLarge", sentence)
}

fn skipped_because(cluster: &Cluster, namespace: &str, pod: &Value, code: &str, sentence: &str) -> Created {
    let created = stored(cluster, namespace, pod);
    assert!(created.is_untouched(), "{}", created.status());
    assert!(created.status().contains(code), "{code}: {}", created.status());
    assert!(created.warnings.contains(sentence), "{sentence}: {}", created.warnings);
    created
}

fn injected(cluster: &Cluster, namespace: &str, pod: &Value) {
    let created = stored(cluster, namespace, pod);
    assert!(created.is_injected(), "{} {}", created.status(), created.warnings);
}

/// Creates a pod without and with its annotations, and removes it again.
fn stored(cluster: &Cluster, namespace: &str, pod: &Value) -> Created {
    let mut bare = pod.clone();
    bare["metadata"].as_object_mut().expect("metadata").remove("annotations");
    bare["metadata"]["name"] = "bare".into();
    let without = cluster.create(namespace, &bare);
    assert!(without.is_untouched() && without.status().is_empty(), "{}", without.status());
    let with = cluster.create(namespace, pod);
    let found = cluster.get(namespace, &["pod", with.name()]);
    assert_eq!(found["spec"], with.pod["spec"], "what is stored");
    // Dry runs do not write to etcd, so pods are created.
    cluster.run(&["delete", "pods", "bare", with.name(), "--namespace", namespace, "--now", "--wait=false"]);
    with
}

/// The Instrumentation of a namespace, once the webhook knows it.
fn stored_instrumentation(cluster: &Cluster, namespace: &str, spec: &Value) {
    let hash = |created: &Created| created.status().to_owned();
    let before = hash(&cluster.dry_run(namespace, &heavy(300_000)));
    cluster.instrumentation(namespace, "default", spec);
    until("the Instrumentation is known", || {
        (hash(&cluster.dry_run(namespace, &heavy(300_000))) != before).then_some(())
    });
}

/// A pod with containers, the first of which are to be injected.
fn crowd(containers: usize, named: usize) -> Value {
    let name = |number: usize| format!("c{number}");
    let list: Vec<String> = (0..named).map(name).collect();
    let mut pod = asking("crowd", &[("inject-java", "true"), ("container-names", &list.join(","))]);
    let container = |number| json!({"name": name(number), "image": "registry.example.com/app:1.0"});
    pod["spec"]["containers"] = (0..containers).map(container).collect();
    pod
}

/// A pod with one container, which has so many bytes of arguments.
fn heavy(bytes: usize) -> Value {
    let mut pod = java("heavy");
    pod["spec"]["containers"][0]["args"] = json!(["a".repeat(bytes)]);
    pod
}

/// One long variable.
fn long(bytes: usize) -> Value {
    json!({"env": [{"name": "LONG", "value": "a".repeat(bytes)}]})
}

/// The memory limit of the chart, in MB.
const MEMORY: f64 = 128.0 * 1024.0 * 1024.0 / 1e6;

/// Just below what etcd stores.
const LARGEST: usize = 1_300_000;

const COUNT: u64 = 120;

/// Large Instrumentations and ServiceAccounts, in its own cluster, since every webhook would list them.
pub fn start_up(_: &Cluster) {
    let plane = ControlPlane::without_controllers();
    let kubeconfig = registration::install(&plane);
    plane.namespace("large", json!({}));
    let long = "a".repeat(LARGEST);
    let accounts = |number: u64| {
        let metadata = json!({"name": format!("large-{number}"), "namespace": "large"});
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "secrets": [{"name": long}]})
    };
    let spec = json!({"env": [{"name": "A", "value": long}]});
    block_on(async {
        let objects = Objects::connect(plane.kubeconfig()).await;
        objects.create_all((0..COUNT).map(accounts)).await;
        let each = (0..COUNT).map(|number| instrumentation("large", &format!("large-{number}"), &spec));
        objects.create_all(each).await;
    });
    let webhook = Webhook::start(&kubeconfig, plane.dir());
    assert_eq!(webhook.metric("otel_webhook_instrumentations"), COUNT);
    assert_eq!(webhook.metric("otel_webhook_instrumentations_too_large"), COUNT);
    let peak = process::memory(webhook.id()).peak;
    note(&format!(
        "{COUNT} large Instrumentations, none of them used, and as many large ServiceAccounts: at most {peak:.1} MB of memory"
    ));
    assert!(peak < MEMORY, "at most {peak} MB of memory were used, and the limit is {MEMORY} MB");
}

/// What the controller may use at most, in MB: the chart's limit is 256 MiB.
pub const MEMORY_OF_CONTROLLER: f64 = 100.0 * 1024.0 * 1024.0 / 1e6;

const LARGE_PODS: usize = 100;
const LARGE_DEPLOYMENTS: usize = 60;

/// Variables of 1.1 MB, which no other number has.
pub fn large_variables(number: usize) -> Value {
    let value = |index: u64| format!("{number}-{index}-{}", "a".repeat(330));
    (0..3_000).map(|index| json!({"name": format!("A{index}"), "value": value(index)})).collect()
}

/// Pods of 1.1 MB, each of its own template, and Deployments without replicas that are as large.
pub fn controller(_: &Cluster) {
    let cluster = &Cluster::without_controllers();
    let namespace = "large";
    cluster.instrumented_namespace(namespace);
    let stopped = cluster.webhook.stop();
    let pods = |number: usize| {
        let mut pod = java(&format!("large-{number}"));
        pod["metadata"]["namespace"] = namespace.into();
        pod["spec"]["containers"][0]["env"] = large_variables(number);
        pod
    };
    let deployments = |number: usize| {
        let mut deployment = deployment(namespace, &format!("large-{number}"), 0);
        deployment["spec"]["template"]["spec"]["containers"][0]["env"] = large_variables(number);
        deployment
    };
    let create = |objects: &mut dyn Iterator<Item = Value>| {
        block_on(async { Objects::connect(cluster.plane.kubeconfig()).await.create_all(objects).await });
    };
    let controller = Controller::with_restarts(cluster);
    let peak = |what: String, pods: usize| {
        controller.start();
        until("all pods are counted", || {
            (controller.java_pods(["missed"]) == [Some(pods as u64)]).then_some(())
        });
        let peak = controller.peak();
        controller.stop();
        note(&format!("{what}: at most {peak:.1} MB of memory"));
        assert!(peak < MEMORY_OF_CONTROLLER, "{what}: at most {peak} MB of memory were used");
    };
    create(&mut (0..LARGE_DEPLOYMENTS).map(deployments));
    peak(format!("{LARGE_DEPLOYMENTS} Deployments of 1.1 MB"), 0);
    create(&mut (0..LARGE_PODS).map(pods));
    drop(stopped);
    peak(format!("and {LARGE_PODS} pods of 1.1 MB"), LARGE_PODS);
}

const OWNERS: usize = 10_000;

/// How many such pods are created at the same time.
const AT_ONCE: usize = 4;

/// Three owners and the namespace, for each pod.
const MOST_GETS: usize = 4;

const MOST_DESCRIPTORS: usize = 100;

/// How often descriptors are counted.
const PAUSE: Duration = Duration::from_millis(2);

/// In its own cluster: its controllers would look for the owners, too, and remove the pods.
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
        let create = |pod| scope.spawn(move || create_owned(cluster, namespace, pod));
        let creating: Vec<_> = (0..AT_ONCE).map(create).collect();
        let created: Vec<_> = creating.into_iter().map(thread::ScopedJoinHandle::join).collect();
        // Also after a failure, or the scope would wait forever.
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
fn create_owned(cluster: &Cluster, namespace: &str, number: usize) -> String {
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
