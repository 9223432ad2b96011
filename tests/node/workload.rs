//! Pods of the cases, and what becomes of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use otel_webhook_testkit::runner::note;
use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::service::{JAVA, Language, NODEJS, PYTHON};

/// The ways of an agent into a pod.
pub const DELIVERIES: [&str; 2] = ["initContainer", "imageVolume"];

/// Under which pods opt in.
const PREFIX: &str = "instrumentation.opentelemetry.io/";

/// The annotation by which a pod chooses the delivery.
pub const DELIVERY: &str = "otel-webhook/delivery";

/// An image with a shell.
pub const APP: &str = "localhost/otel-webhook-node/app:1";

/// Variables of an Instrumentation with which agents write spans to the log, and nothing else anywhere.
pub fn to_the_log() -> Value {
    let variables = [
        ("OTEL_TRACES_EXPORTER", "console"),
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_LOGS_EXPORTER", "none"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ];
    variables.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

/// A pod of one container, `app`, with annotations under our prefix.
pub fn asking(name: &str, annotations: &[(&str, &str)], mut container: Value) -> Value {
    container["name"] = "app".into();
    let annotations: BTreeMap<_, _> =
        annotations.iter().map(|(key, value)| (format!("{PREFIX}{key}"), *value)).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 1, "containers": [container],
        },
    })
}

/// A pod with the service of a language that opts in, and a second container that asks it. The pod is ready while
/// the service answers.
pub fn service(name: &str, language: Language, delivery: &str) -> Value {
    let opts_in = format!("inject-{}", language.name);
    let mut pod = asking(name, &[(&opts_in, "true")], language.container(&[]));
    pod["metadata"]["annotations"][DELIVERY] = delivery.into();
    let ask = json!({"exec": {"command": ["busybox", "wget", "-q", "-O", "-", language.url("ready")]}});
    let mut probe = ask;
    probe["periodSeconds"] = 1.into();
    probe["timeoutSeconds"] = 10.into();
    let asks = json!({
        "name": "asks", "image": APP, "command": ["busybox", "sh", "-c", "trap exit TERM; while :; do sleep 1; done"],
        "readinessProbe": probe,
    });
    pod["spec"]["containers"].as_array_mut().expect("containers").push(asks);
    pod
}

/// Security contexts with which a pod is accepted where `restricted` is enforced, with read-only root file systems.
pub fn restricted(mut pod: Value) -> Value {
    pod["spec"]["securityContext"] = json!({
        "runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 2000, "seccompProfile": {"type": "RuntimeDefault"},
    });
    for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
        container["securityContext"] = json!({
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        });
    }
    pod
}

/// A Deployment of such a pod.
pub fn deployment(namespace: &str, name: &str, replicas: u32, mut pod: Value) -> Value {
    let labels = json!({"app": name});
    let metadata = json!({"labels": labels, "annotations": pod["metadata"]["annotations"].take()});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": metadata, "spec": pod["spec"].take()},
        },
    })
}

/// What an agent writes to the log of its service when it exports a span to it.
pub fn span(language: Language) -> &'static str {
    match language {
        Language { name, .. } if name == JAVA.name => "LoggingSpanExporter",
        Language { name, .. } if name == NODEJS.name => "'telemetry.sdk.language': 'nodejs'",
        Language { name, .. } if name == PYTHON.name => "\"telemetry.sdk.language\": \"python\"",
        Language { name, .. } => panic!("what the agent of {name} writes is not known"),
    }
}

/// A pod that runs.
pub struct Running<'c> {
    cluster: &'c Cluster,
    pub namespace: String,
    pub name: String,
}

impl<'c> Running<'c> {
    /// Creates a pod, which is injected, and waits until it is ready.
    pub fn create(cluster: &'c Cluster, namespace: &str, pod: &Value) -> Self {
        let running = Self::created(cluster, namespace, pod);
        running.until_ready();
        running
    }

    /// Creates a pod, which is injected.
    pub fn created(cluster: &'c Cluster, namespace: &str, pod: &Value) -> Self {
        let mut pod = pod.clone();
        pod["metadata"]["namespace"] = namespace.into();
        cluster.apply(&pod);
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        let running = Self { cluster, namespace: namespace.to_owned(), name };
        let stored = running.get();
        assert_eq!(
            stored["metadata"]["labels"]["otel-webhook/injected"], "true",
            "{}",
            stored["metadata"]["annotations"]
        );
        running
    }

    /// Those of a Deployment, which is rolled out.
    pub fn of_deployment(cluster: &'c Cluster, namespace: &str, name: &str) -> Vec<Self> {
        cluster.rolled_out(namespace, name);
        Self::labelled(cluster, namespace, &format!("app={name}"))
    }

    /// Those with a label that are not being deleted.
    pub fn labelled(cluster: &'c Cluster, namespace: &str, label: &str) -> Vec<Self> {
        let list = cluster.get(namespace, &["pods", "--selector", label]);
        let running = list["items"].as_array().into_iter().flatten();
        let running = running.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let name = |pod: &Value| pod["metadata"]["name"].as_str().expect("a name").to_owned();
        running.map(|pod| Self { cluster, namespace: namespace.to_owned(), name: name(pod) }).collect()
    }

    /// The pod as the API server has it.
    pub fn get(&self) -> Value {
        self.cluster.get(&self.namespace, &["pod", &self.name])
    }

    /// Waits until it is ready.
    pub fn until_ready(&self) {
        let ready = self.poll(|pod| is_ready(pod).then_some(()));
        assert!(ready.is_some(), "{} is not ready:\n{}", self.name, self.cluster.states(&self.namespace));
    }

    /// Waits for what `probe` finds in the pod.
    pub fn poll<T>(&self, probe: impl Fn(&Value) -> Option<T>) -> Option<T> {
        otel_webhook_testkit::until::poll(|| probe(&self.get()))
    }

    /// What the container `app` has printed once this is among it.
    pub fn log_with(&self, wanted: &str) -> String {
        self.log_of("app", wanted)
    }

    /// What a container has printed once this is among it.
    pub fn log_of(&self, container: &str, wanted: &str) -> String {
        until(&format!("{} prints {wanted}", self.name), || {
            let ran = self.cluster.kubectl(&[
                "logs",
                &self.name,
                "--namespace",
                &self.namespace,
                "--container",
                container,
            ]);
            ran.stdout.contains(wanted).then_some(ran.stdout)
        })
    }

    /// What a pod of the product answers on a path of its operations port.
    pub fn served(&self, path: &str) -> String {
        let pod = self.get();
        let ports = pod["spec"]["containers"][0]["ports"].as_array().into_iter().flatten();
        let mut operations = ports.filter(|port| port["name"] == "admin");
        let port = &operations.next().expect("an operations port")["containerPort"];
        let raw = format!("/api/v1/namespaces/{}/pods/{}:{port}/proxy/{path}", self.namespace, self.name);
        let ran = self.cluster.kubectl(&["get", "--raw", &raw]);
        assert!(ran.ok, "{}", ran.stderr);
        ran.stdout
    }

    /// Ends the sandbox, as when a node starts again: kubelet makes another one, in which all containers of the pod
    /// run again, with the volumes of the pod as they were.
    pub fn end_sandbox(&self) {
        let node = self.cluster.node();
        let sandbox = node.sandbox(&self.namespace, &self.name).expect("a sandbox");
        assert!(node.kill(&sandbox), "{} has ended already", self.name);
    }

    /// Kills a container.
    pub fn kill(&self, container: &str) {
        let node = self.cluster.node();
        let id = node.container(&self.namespace, &self.name, container).expect("a container that runs");
        assert!(node.kill(&id), "{container} has ended already");
    }

    /// Waits until it is ready with other containers than these.
    pub fn until_ready_again(&self, before: &Value) {
        let old = container_id(before);
        let again = self.poll(|pod| (is_ready(pod) && container_id(pod) != old).then_some(()));
        assert!(
            again.is_some(),
            "{} is not ready again:\n{}",
            self.name,
            self.cluster.states(&self.namespace)
        );
    }

    /// Makes the sandbox again, and waits until the pod is ready in it.
    pub fn make_again(&self) {
        let before = self.get();
        self.end_sandbox();
        self.until_ready_again(&before);
    }

    /// The files of an `emptyDir` volume.
    pub fn files(&self, volume: &str) -> Files {
        let pod = self.get();
        let uid = pod["metadata"]["uid"].as_str().expect("a uid");
        files(&self.cluster.node().empty_dir(uid, volume))
    }

    /// Deletes it.
    pub fn delete(self) {
        let ran = self.cluster.kubectl(&["delete", "pod", &self.name, "--namespace", &self.namespace]);
        assert!(ran.ok, "{}", ran.stderr);
        note(&format!("{} was ready", self.name));
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|one| one["type"] == "Ready");
    ready.next().is_some_and(|ready| ready["status"] == "True")
}

fn container_id(pod: &Value) -> Value {
    pod["status"]["containerStatuses"][0]["containerID"].clone()
}

/// Files, folders and links by their paths: the mode, and the content or the target.
pub type Files = BTreeMap<String, (u32, Vec<u8>)>;

/// All that is in a folder, but for what Python compiles there.
pub fn files(folder: &Path) -> Files {
    let mut all = Files::new();
    let mut open = vec![folder.to_owned()];
    while let Some(current) = open.pop() {
        // A folder is not there yet, or not any more, while init containers copy.
        for entry in fs::read_dir(&current).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.ends_with("__pycache__") {
                continue;
            }
            let Ok(metadata) = path.symlink_metadata() else { continue };
            let content = if metadata.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else if metadata.is_symlink() {
                fs::read_link(&path).unwrap_or_default().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap_or_default()
            };
            let name = path.strip_prefix(folder).expect("within the folder").display().to_string();
            all.insert(name, (metadata.permissions().mode(), content));
        }
    }
    all
}

/// The first difference between two folders, if there is one.
pub fn difference(one: &Files, other: &Files) -> Option<String> {
    let names = one.keys().chain(other.keys());
    names.filter(|name| one.get(*name) != other.get(*name)).min().cloned()
}
