//! A cluster with the webhook in it, and what the cases do there.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use otel_webhook_testkit::{
    cluster::{
        control_plane::{ControlPlane, Ran},
        created::Created,
        manifests::prefixed,
    },
    objects::items,
    until::until,
};
use serde_json::{Value, json};

use crate::registration;
use crate::webhook::Webhook;

pub use otel_webhook_testkit::cluster::manifests::{asking, java};

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
        registration::register(&self.plane, &self.webhook.url_of("/mutate-v1-pod"), authorities, number);
        let mut left_out = java("left-out");
        left_out["metadata"]["labels"] = json!({(registration::LABEL): number.to_string()});
        until("the registration is in effect", || {
            let injected = |pod| self.dry_run("registered", pod).is_injected();
            (!injected(&left_out) && injected(&java("included"))).then_some(())
        });
    }

    /// Makes a namespace in which pods can be created at once.
    pub fn namespace(&self, name: &str, annotations: &[(&str, &str)]) {
        let metadata = json!({"annotations": prefixed(annotations), "labels": {"case": name}});
        self.plane.namespace(name, metadata);
    }

    /// Makes a namespace with an Instrumentation, `default`, that the webhook knows.
    pub fn instrumented_namespace(&self, name: &str) {
        self.namespace(name, &[]);
        self.instrumentation(name, "default", &json!({}));
        until("the Instrumentation is known", || {
            self.dry_run(name, &java("probe")).is_injected().then_some(())
        });
    }

    /// Makes an Instrumentation, or changes it. The webhook learns of it by a watch.
    pub fn instrumentation(&self, namespace: &str, name: &str, spec: &Value) {
        self.plane.instrumentation(namespace, name, spec);
    }

    /// Makes an object of another kind, or changes it.
    pub fn apply(&self, object: &Value) {
        self.plane.apply_server_side(&object.to_string());
    }

    /// Annotates the object that kubectl's arguments name.
    pub fn annotate(&self, args: &[&str]) {
        self.run(&[&["annotate", "--overwrite"], args].concat());
    }

    /// Runs kubectl, which must not fail.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.plane.run_kubectl(args)
    }

    /// Creates a pod.
    pub fn create(&self, namespace: &str, pod: &Value) -> Created {
        self.plane.create_pod(namespace, pod, &[])
    }

    /// What would come of a creation.
    pub fn dry_run(&self, namespace: &str, pod: &Value) -> Created {
        self.plane.create_pod(namespace, pod, &["--dry-run=server"])
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
        until(what, || ready(&self.dry_run(namespace, pod)).then_some(()));
        self.create(namespace, pod)
    }

    /// An object, or the list of a kind.
    pub fn get(&self, namespace: &str, args: &[&str]) -> Value {
        self.plane.get(namespace, args)
    }

    /// Waits for `count` pods that a controller makes and that have this label.
    pub fn pods_of(&self, namespace: &str, label: &str, count: usize) -> Vec<Created> {
        until(&format!("{count} pods with {label}"), || {
            let list = self.get(namespace, &["pods", "--selector", label]);
            let pods = list["items"].as_array().expect("a list");
            (pods.len() == count).then(|| pods.iter().cloned().map(Created::found).collect())
        })
    }

    /// Creates pods of workloads while the webhook is stopped.
    pub fn missed(&self, namespace: &str, deployment: &str, replicas: usize) {
        let _stopped = self.webhook.stop();
        self.apply(&otel_webhook_testkit::cluster::manifests::deployment(namespace, deployment, replicas));
        self.pods_of(namespace, &format!("app={deployment}"), replicas);
    }

    /// Waits for Events on an object, and returns their notes.
    pub fn events(&self, namespace: &str, name: &str, reason: &str) -> Vec<String> {
        until(&format!("the Event {reason} on {name}"), || {
            let list = self.get(namespace, &["events.events.k8s.io"]);
            let own = items(&list["items"])
                .filter(|event| event["regarding"]["name"] == name && event["reason"] == reason);
            let notes: Vec<_> = own.filter_map(|event| event["note"].as_str().map(str::to_owned)).collect();
            (!notes.is_empty()).then_some(notes)
        })
    }
}
