//! A cluster with a node on which pods become ready, and what the cases do there.

use std::fs;
use std::path::PathBuf;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use otel_webhook_testkit::{
    cluster::{control_plane::ControlPlane, created::Created, manifests::java, traffic::Traffic},
    runner::note,
    until::{poll, until},
};
use serde_json::{Value, json};

/// How many pods are created at the same time: with one connection each, a pod every few milliseconds.
const SENDERS: usize = 4;

const LOG_TAIL_LINES: usize = 30;

/// A control plane with one node that runs nothing and says that all is well.
pub struct Cluster {
    pub plane: ControlPlane,
}

impl Cluster {
    pub fn start() -> Self {
        let mut plane = ControlPlane::start();
        plane.start_node(&[]);
        Self { plane }
    }

    /// The ends of the logs of the programs that cases start.
    pub fn logs(&self) -> String {
        let tail = |path: PathBuf| {
            let log = fs::read_to_string(&path).unwrap_or_default();
            let skipped = log.lines().count().saturating_sub(LOG_TAIL_LINES);
            let lines: Vec<_> = log.lines().skip(skipped).collect();
            format!("The end of {}:\n{}\n", path.display(), lines.join("\n"))
        };
        ["otel-webhook.log", "cert-manager.log"].map(|name| tail(self.plane.dir().join(name))).concat()
    }

    /// Makes a namespace in which pods can be created at once.
    pub fn namespace(&self, name: &str) {
        self.plane.namespace(name, json!({}));
    }

    /// Makes an Instrumentation, as a user does after the installation.
    pub fn instrumentation(&self, namespace: &str) {
        self.plane.instrumentation(namespace, "default", &json!({}));
    }

    /// An object, named by what kubectl takes; nothing where it is not there.
    pub fn find(&self, kind: &str, name: &str) -> Option<Value> {
        self.find_in("default", kind, name)
    }

    /// An object of a namespace.
    pub fn find_in(&self, namespace: &str, kind: &str, name: &str) -> Option<Value> {
        let ran = self.plane.kubectl(&["get", "--namespace", namespace, "--output", "json", kind, name]);
        assert!(
            ran.ok || ran.stderr.contains("NotFound") || ran.stderr.contains("doesn't have a resource type"),
            "kubectl get {kind} {name}: {}",
            ran.stderr
        );
        ran.ok.then(|| serde_json::from_str(&ran.stdout).expect("kubectl prints JSON"))
    }

    /// Waits for a Secret, and gives the text under one of its keys.
    pub fn secret(&self, namespace: &str, secret: &str, key: &str) -> String {
        let found = until(&format!("the Secret {secret}"), || self.find_in(namespace, "secret", secret));
        let value = found["data"][key].as_str().unwrap_or_else(|| panic!("no {key} in {secret}"));
        String::from_utf8(BASE64_STANDARD.decode(value).expect("base64")).expect("text")
    }

    /// Creates a pod that asks for Java.
    pub fn create_java(&self, namespace: &str, name: &str) -> Created {
        self.plane.create_pod(namespace, &java(name), &[])
    }

    /// Waits until pods of a namespace are injected.
    pub fn until_injected(&self, namespace: &str) {
        let mut last = String::new();
        let found = poll(|| {
            let tried = self.dry_run(namespace);
            last = format!("{} {}", tried.warnings, tried.status());
            tried.is_injected().then_some(())
        });
        assert!(found.is_some(), "pods of {namespace} are not injected: {last}");
    }

    /// Waits until pods of a namespace are left as they are.
    pub fn until_untouched(&self, namespace: &str) {
        until("pods are left as they are", || self.dry_run(namespace).is_untouched().then_some(()));
    }

    fn dry_run(&self, namespace: &str) -> Created {
        self.plane.create_pod(namespace, &java("probe"), &["--dry-run=server"])
    }

    /// Creates pods in a namespace while `act` runs, and panics if one of them is not injected.
    pub fn during_traffic(&self, namespace: &str, act: impl FnOnce(&Traffic<'_>)) {
        let pod = |number: usize| {
            let mut pod = java(&format!("pod-{number}"));
            pod["metadata"]["namespace"] = namespace.into();
            pod
        };
        let traffic = Traffic::new(&self.plane, SENDERS, &pod, Created::is_injected);
        let created = traffic.during(|| act(&traffic));
        note(&format!("{created} pods were created meanwhile, all of them injected"));
    }
}
