//! A cluster with a node on which pods become ready, and what the cases do there.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use otel_webhook_testkit::{
    cluster::{control_plane::ControlPlane, created::Created},
    until::{poll, until},
};
use serde_json::{Value, json};

/// Longer than a watch or a controller takes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

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

    /// Makes an object, or changes it.
    pub fn apply(&self, object: &Value) {
        let args = ["apply", "--server-side", "--force-conflicts", "--filename", "-"];
        let ran = self.plane.kubectl_in(&args, &object.to_string());
        assert!(ran.ok, "kubectl apply failed: {}", ran.stderr);
    }

    /// Makes a namespace in which pods can be created at once.
    pub fn namespace(&self, name: &str) {
        // The API server refuses pods before their service account is there.
        self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        self.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": name}}));
    }

    /// Makes an Instrumentation, as a user does after the installation.
    pub fn instrumentation(&self, namespace: &str) {
        let object = json!({
            "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
            "metadata": {"name": "default", "namespace": namespace}, "spec": {},
        });
        let args = ["apply", "--filename", "-"];
        until("an Instrumentation is taken", LIMIT, || {
            self.plane.kubectl_in(&args, &object.to_string()).ok.then_some(())
        });
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
        let found =
            until(&format!("the Secret {secret}"), LIMIT, || self.find_in(namespace, "secret", secret));
        let value = found["data"][key].as_str().unwrap_or_else(|| panic!("no {key} in {secret}"));
        String::from_utf8(BASE64_STANDARD.decode(value).expect("base64")).expect("text")
    }

    /// Creates a pod that asks for Java.
    pub fn create_java(&self, namespace: &str, name: &str) -> Created {
        self.create_java_by(namespace, name, &[])
    }

    /// Waits until pods of a namespace are injected.
    pub fn until_injected(&self, namespace: &str) {
        let mut last = String::new();
        let found = poll(LIMIT, || {
            let tried = self.create_java_by(namespace, "probe", &["--dry-run=server"]);
            last = format!("{} {}", tried.warnings, tried.status());
            tried.is_injected().then_some(())
        });
        assert!(found.is_some(), "pods of {namespace} are not injected: {last}");
    }

    /// Waits until pods of a namespace are left as they are.
    pub fn until_untouched(&self, namespace: &str) {
        until("pods are left as they are", LIMIT, || {
            self.create_java_by(namespace, "probe", &["--dry-run=server"]).is_untouched().then_some(())
        });
    }

    fn create_java_by(&self, namespace: &str, name: &str, more: &[&str]) -> Created {
        let args = ["create", "--namespace", namespace, "--output", "json", "--filename", "-"];
        let ran = self.plane.kubectl_in(&[&args, more].concat(), &java(name).to_string());
        assert!(ran.ok, "the pod was refused: {}", ran.stderr);
        let pod = serde_json::from_str(&ran.stdout).expect("kubectl prints JSON");
        Created { pod, warnings: ran.stderr }
    }
}

/// A pod that asks for Java. It tolerates the node, so that it is scheduled.
pub fn java(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": {"instrumentation.opentelemetry.io/inject-java": "true"}},
        "spec": {"containers": [{"name": "app", "image": "registry.example.com/app:1.0"}]},
    })
}
