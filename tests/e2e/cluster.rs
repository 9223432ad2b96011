//! A cluster with the webhook in it, and what the cases do there.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use otel_webhook_testkit::{
    cluster::{control_plane::ControlPlane, created::Created},
    until::until,
};
use serde_json::{Map, Value, json};

use crate::registration;
use crate::webhook::Webhook;

/// Under which pods and namespaces ask.
const PREFIX: &str = "instrumentation.opentelemetry.io/";

/// Longer than a watch or a controller takes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Fields are dropped in their order: the webhook goes before what it watches.
pub struct Cluster {
    pub webhook: Webhook,
    pub plane: ControlPlane,
    registrations: AtomicU32,
}

impl Cluster {
    /// A control plane, and the webhook registered with it.
    pub fn start() -> Self {
        Self::on(ControlPlane::start())
    }

    /// The same without kube-controller-manager.
    pub fn without_controllers() -> Self {
        Self::on(ControlPlane::without_controllers())
    }

    /// With a node on which pods become ready, but for what these stages of kwok say.
    pub fn with_node(stages: &[&Path]) -> Self {
        let mut cluster = Self::start();
        cluster.plane.start_node(stages);
        cluster
    }

    fn on(plane: ControlPlane) -> Self {
        let kubeconfig = registration::install(&plane);
        let webhook = Webhook::start(&kubeconfig, plane.dir());
        let cluster = Self { webhook, plane, registrations: AtomicU32::new(0) };
        cluster.namespace("registered", &[]);
        cluster.instrumentation("registered", "default", &json!({}));
        cluster.register(&[&cluster.webhook.first_authority]);
        cluster
    }

    /// Registers the webhook by the authorities of its certificate, and waits
    /// until the API server calls it accordingly.
    pub fn register(&self, authorities: &[&str]) {
        let number = self.registrations.fetch_add(1, SeqCst) + 1;
        registration::register(&self.plane, &self.webhook.url(), authorities, number);
        let mut left_out = java("left-out");
        left_out["metadata"]["labels"] = json!({(registration::LABEL): number.to_string()});
        until("the registration is in effect", LIMIT, || {
            let injected = |pod| self.dry_run("registered", pod).is_injected();
            (!injected(&left_out) && injected(&java("included"))).then_some(())
        });
    }

    /// Makes a namespace in which pods can be created at once.
    pub fn namespace(&self, name: &str, annotations: &[(&str, &str)]) {
        // The API server refuses pods before their service account is there.
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Namespace",
             "metadata": {"name": name, "annotations": prefixed(annotations), "labels": {"case": name}}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}},
        ]});
        registration::apply(&self.plane, &list.to_string());
    }

    /// Makes a namespace with an Instrumentation, `default`, that the webhook knows.
    pub fn instrumented_namespace(&self, name: &str) {
        self.namespace(name, &[]);
        self.instrumentation(name, "default", &json!({}));
        until("the Instrumentation is known", LIMIT, || {
            self.dry_run(name, &java("probe")).is_injected().then_some(())
        });
    }

    /// Makes an Instrumentation, or changes it. The webhook learns of it by a watch.
    pub fn instrumentation(&self, namespace: &str, name: &str, spec: &Value) {
        let object = json!({
            "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        });
        let args = ["apply", "--server-side", "--force-conflicts", "--filename", "-"];
        // The kind is not served for a moment after another case changed the CRD.
        until(&format!("the Instrumentation {namespace}/{name} is stored"), LIMIT, || {
            self.plane.kubectl_in(&args, &object.to_string()).ok.then_some(())
        });
    }

    /// Makes an object of another kind, or changes it.
    pub fn apply(&self, object: &Value) {
        registration::apply(&self.plane, &object.to_string());
    }

    /// Creates a pod.
    pub fn create(&self, namespace: &str, pod: &Value) -> Created {
        self.create_by(namespace, pod, &[])
    }

    /// What would come of a creation.
    pub fn dry_run(&self, namespace: &str, pod: &Value) -> Created {
        self.create_by(namespace, pod, &["--dry-run=server"])
    }

    /// Creates a pod once what would come of it is `ready`: the webhook knows
    /// then what was done before.
    pub fn create_when(
        &self,
        what: &str,
        namespace: &str,
        pod: &Value,
        ready: impl Fn(&Created) -> bool,
    ) -> Created {
        until(what, LIMIT, || ready(&self.dry_run(namespace, pod)).then_some(()));
        self.create(namespace, pod)
    }

    /// An object, or the list of a kind.
    pub fn get(&self, namespace: &str, args: &[&str]) -> Value {
        let ran =
            self.plane.kubectl(&[&["get", "--namespace", namespace, "--output", "json"], args].concat());
        assert!(ran.ok, "kubectl get {args:?} failed: {}", ran.stderr);
        serde_json::from_str(&ran.stdout).expect("kubectl prints JSON")
    }

    /// What the API server answers at a path.
    pub fn get_raw(&self, path: &str) -> Value {
        let ran = self.plane.kubectl(&["get", "--raw", path]);
        assert!(ran.ok, "kubectl get --raw {path} failed: {}", ran.stderr);
        serde_json::from_str(&ran.stdout).expect("JSON")
    }

    /// Waits for `count` pods that a controller makes and that have this label.
    pub fn pods_of(&self, namespace: &str, label: &str, count: usize) -> Vec<Created> {
        until(&format!("{count} pods with {label}"), LIMIT, || {
            let list = self.get(namespace, &["pods", "--selector", label]);
            let pods = list["items"].as_array().expect("a list");
            (pods.len() == count).then(|| pods.iter().cloned().map(Created::found).collect())
        })
    }

    fn create_by(&self, namespace: &str, pod: &Value, more: &[&str]) -> Created {
        let args = ["create", "--namespace", namespace, "--output", "json", "--filename", "-"];
        let ran = self.plane.kubectl_in(&[&args, more].concat(), &pod.to_string());
        assert!(ran.ok, "the pod was refused: {}", ran.stderr);
        let pod = serde_json::from_str(&ran.stdout).expect("kubectl prints JSON");
        Created { pod, warnings: ran.stderr }
    }
}

/// A pod of one container, `app`, with these annotations of the product.
pub fn asking(name: &str, annotations: &[(&str, &str)]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": prefixed(annotations)},
        "spec": {"containers": [{"name": "app", "image": "registry.example.com/app:1.0"}]},
    })
}

/// One that asks for Java as most do.
pub fn java(name: &str) -> Value {
    asking(name, &[("inject-java", "true")])
}

/// What a controller makes such pods of.
pub fn template(label: &str) -> Value {
    let mut pod = java("");
    json!({
        "metadata": {"labels": {"app": label}, "annotations": pod["metadata"]["annotations"].take()},
        "spec": pod["spec"].take(),
    })
}

fn prefixed(annotations: &[(&str, &str)]) -> Value {
    let entries = annotations.iter().map(|(name, value)| (format!("{PREFIX}{name}"), Value::from(*value)));
    Value::Object(entries.collect::<Map<_, _>>())
}
