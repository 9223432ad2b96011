//! The webhook and the API server end and start while pods are created: no pod is refused.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use otel_webhook_testkit::runner::note;
use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, HOME};
use crate::service::PYTHON;
use crate::workload::{Running, deployment, service};

/// How many pods have to be created in each state.
const PODS: usize = 10;

/// Pods that are created, and not stored, one after the other.
#[derive(Default)]
struct Traffic {
    created: AtomicUsize,
    injected: AtomicUsize,
    ended: AtomicBool,
}

impl Traffic {
    /// Creates pods in a namespace while `act` runs. Panics if one is refused. Returns how many were created, and how
    /// many of them injected.
    fn during(cluster: &Cluster, namespace: &str, act: impl FnOnce(&Self)) -> (usize, usize) {
        let traffic = Self::default();
        thread::scope(|scope| {
            let sender = scope.spawn(|| traffic.send(cluster, namespace));
            // Ends the traffic also when a step fails, or the scope would wait forever.
            let end = EndOnDrop(&traffic);
            traffic.goes_on();
            act(&traffic);
            traffic.goes_on();
            drop(end);
            let refused = sender.join().expect("no panic");
            assert!(refused.is_empty(), "refused: {refused:?}");
        });
        (traffic.created.into_inner(), traffic.injected.into_inner())
    }

    /// Waits until some more pods were created.
    fn goes_on(&self) {
        let before = self.created.load(SeqCst);
        until("more pods are created", || (self.created.load(SeqCst) >= before + PODS).then_some(()));
    }

    fn send(&self, cluster: &Cluster, namespace: &str) -> Vec<String> {
        let pod = service("traffic", PYTHON, "imageVolume").to_string();
        let args = ["create", "--namespace", namespace, "--dry-run=server", "--output=json", "--filename=-"];
        let mut refused = Vec::new();
        while !self.ended.load(SeqCst) {
            let ran = cluster.node().plane.kubectl_in(&args, &pod);
            let stored: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
            if !ran.ok {
                refused.push(ran.stderr);
            } else if stored["metadata"]["labels"]["otel-webhook/injected"] == "true" {
                self.injected.fetch_add(1, SeqCst);
            }
            self.created.fetch_add(1, SeqCst);
        }
        refused
    }
}

struct EndOnDrop<'t>(&'t Traffic);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, SeqCst);
    }
}

fn instrumented(cluster: &Cluster, namespace: &str) {
    cluster.namespace(namespace, &json!({}));
    cluster.instrumentation(namespace, "default", &json!({}));
}

fn webhook(cluster: &Cluster) -> Vec<Running<'_>> {
    Running::labelled(
        cluster,
        HOME,
        "app.kubernetes.io/name=otel-webhook,app.kubernetes.io/component=webhook",
    )
}

/// All replicas are replaced, one after the other.
pub fn rolling_upgrade(cluster: &Cluster) {
    instrumented(cluster, "rolling-upgrade");
    let (created, injected) = Traffic::during(cluster, "rolling-upgrade", |_| {
        let ran = cluster.kubectl(&["rollout", "restart", "deployment/otel-webhook", "--namespace", HOME]);
        assert!(ran.ok, "{}", ran.stderr);
        cluster.rolled_out(HOME, "otel-webhook");
    });
    note(&format!("{created} pods were created meanwhile, {injected} of them injected"));
    assert_eq!(injected, created, "a rolling upgrade costs a pod its agent");
}

/// Each replica is killed, first one of them, and then all at once.
pub fn killed(cluster: &Cluster) {
    instrumented(cluster, "killed");
    let (created, injected) = Traffic::during(cluster, "killed", |traffic| {
        for count in [1, usize::MAX] {
            let pods = webhook(cluster);
            assert!(pods.len() > 1, "one replica alone");
            let before: Vec<_> = pods.iter().map(Running::get).collect();
            for pod in pods.iter().take(count) {
                pod.kill("webhook");
            }
            for (pod, before) in pods.iter().zip(&before).take(count) {
                pod.until_ready_again(before);
            }
            traffic.goes_on();
        }
    });
    note(&format!("{created} pods were created meanwhile, {injected} of them injected"));
    Running::create(cluster, "killed", &service("later", PYTHON, "imageVolume")).delete();
}

/// The node is drained: budgets keep one replica of the webhook, and one of the application.
pub fn drained(cluster: &Cluster) {
    const NAMESPACE: &str = "drained";
    const DRAIN: &str = "kubectl drain node-1 --delete-emptydir-data --force --timeout=20s";
    instrumented(cluster, NAMESPACE);
    cluster.apply(&deployment(NAMESPACE, "order", 2, service("order", PYTHON, "initContainer")));
    cluster.apply(&json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "order", "namespace": NAMESPACE},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "order"}}},
    }));
    let before = Running::of_deployment(cluster, NAMESPACE, "order");
    until("the budget is known", || {
        let budget = cluster.get(NAMESPACE, &["poddisruptionbudget", "order"]);
        (budget["status"]["disruptionsAllowed"] == 1).then_some(())
    });
    let (created, injected) = Traffic::during(cluster, NAMESPACE, |traffic| {
        let drained = cluster.try_shell(DRAIN);
        assert!(!drained.ok && drained.stderr.contains("disruption budget"), "{}", drained.stderr);
        traffic.goes_on();
        cluster.shell("kubectl uncordon node-1");
        cluster.rolled_out(HOME, "otel-webhook");
    });
    note(&format!("{created} pods were created meanwhile, {injected} of them injected"));
    assert_eq!(injected, created, "a drained node costs a pod its agent");
    let after = Running::of_deployment(cluster, NAMESPACE, "order");
    let kept = after.iter().filter(|pod| before.iter().any(|one| one.name == pod.name)).count();
    assert!(after.len() == 2 && kept == 1, "the budget allows one eviction, and {kept} pods are as before");
    for pod in &after {
        assert_eq!(pod.get()["metadata"]["labels"]["otel-webhook/injected"], "true");
    }
    cluster.rolled_out(HOME, "otel-webhook-controller");
}

/// The API server ends and starts: the webhook goes on as it was.
pub fn api_server(cluster: &Cluster) {
    instrumented(cluster, "api-server");
    let containers = || -> Vec<_> { webhook(cluster).iter().map(|pod| pod.get()["status"].take()).collect() };
    let before = containers();
    {
        let mut node = cluster.node_mut();
        node.plane.stop("kube-apiserver");
        node.plane.start_again("kube-apiserver");
    }
    Running::create(cluster, "api-server", &service("after", PYTHON, "initContainer")).delete();
    cluster.instrumentation("api-server", "default", &json!({"env": [{"name": "A", "value": "later"}]}));
    for (before, after) in before.iter().zip(&containers()) {
        let restarts = |status: &Value| status["containerStatuses"][0]["restartCount"].clone();
        assert_eq!(restarts(before), restarts(after));
    }
}
