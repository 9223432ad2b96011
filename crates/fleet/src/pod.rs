//! A running pod, reduced to what its states depend on.
//!
//! The state of a language is found by comparing what the pod has with what a new pod in its place would get. So
//! two things are kept of it: its agents, by its containers and its stamp, and the pod as it was before injection.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use otel_webhook_inject::{
    LABEL, MESSAGE, STATUS,
    pod::Pod,
    workload::{self, Lookup, OwnerQuery, Owners},
};
use serde_json::{Map, Value, json};

use crate::{
    failing::{self, PodStatus},
    injected::{self, Agent, is_init, is_mark},
    workload::Workload,
};

/// What the keys of the annotations contain that decisions depend on.
const PREFIXES: [&str; 2] = ["opentelemetry.io/", "otel-webhook/"];

/// Labels that tell the pods of one template from those of another: of Deployments, and of `StatefulSets` and
/// `DaemonSets`.
const TEMPLATE_LABELS: [&str; 2] = ["pod-template-hash", "controller-revision-hash"];

/// A running pod.
#[derive(Clone, Debug)]
pub struct RunningPod {
    /// Its workload.
    pub workload: Workload,
    /// What all pods of the same template share.
    pub template: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// When it was created.
    pub created: Timestamp,
    /// Changes with its labels, and with the annotations that matter.
    pub digest: u64,
    /// Its version: another one of the same pod may have another status.
    pub resource_version: String,
    /// Its agents; `None` if only its metadata was read.
    pub agents: Option<Vec<Agent>>,
    /// The languages that were skipped when it was created, by its stamp, with the code of the reason.
    pub skipped: Vec<(String, String)>,
    /// The sentences about what was skipped and about probable mistakes, as of its creation.
    pub message: Option<String>,
    /// What its kubelet says; nothing if only its metadata was read.
    pub status: PodStatus,
    /// The pod without what was injected.
    pub shape: Shape,
}

impl RunningPod {
    /// Reads a pod. `None` for one that has ended or is about to end, and for one that no API server reviews.
    pub fn read(pod: &Value) -> Option<Self> {
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        if ["Succeeded", "Failed"].contains(&phase) {
            return None;
        }
        let agents = injected::agents(pod);
        let shape = Shape::of(pod, !agents.is_empty());
        let languages: Vec<_> = agents.iter().map(|agent| agent.language).collect();
        let status = failing::of(pod, &languages);
        let skipped = injected::stamp(pod).into_iter().filter(|entry| !entry.is_injected());
        let skipped = skipped.map(|entry| (entry.language.into_owned(), entry.outcome.into_owned()));
        let message = pod["metadata"]["annotations"][MESSAGE].as_str().map(str::to_owned);
        Some(Self {
            agents: Some(agents),
            skipped: skipped.collect(),
            message,
            status,
            ..Self::with_shape(&pod["metadata"], shape)?
        })
    }

    /// Reads the metadata of a pod. What else it has is not known then.
    pub fn of_metadata(metadata: &Value) -> Option<Self> {
        Self::with_shape(metadata, Shape::of_metadata(metadata))
    }

    fn with_shape(metadata: &Value, shape: Shape) -> Option<Self> {
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        let created = metadata["creationTimestamp"].as_str()?.parse().ok()?;
        if !metadata["deletionTimestamp"].is_null() {
            return None;
        }
        let (namespace, name, uid) = (text("namespace"), text("name"), text("uid"));
        let (workload, owner) = {
            // Mirror pods are not created through the API server, so no webhook reviews them.
            let pod = shape.pod().ok().filter(|pod| !pod.is_mirror())?;
            workload_of(&pod, &namespace, &name)
        };
        let labels = TEMPLATE_LABELS.iter().filter_map(|label| metadata["labels"][label].as_str());
        // A pod states its owner, whether that is one or not: it joins no pods of another namespace or workload.
        let owner = format!("{workload} {}", owner.as_deref().unwrap_or(&uid));
        let template = [owner.as_str()].into_iter().chain(labels).collect::<Vec<_>>().join("/");
        Some(Self {
            workload,
            template,
            name,
            uid,
            created,
            digest: digest(metadata),
            resource_version: text("resourceVersion"),
            agents: None,
            skipped: Vec::new(),
            message: None,
            status: PodStatus::default(),
            shape,
        })
    }
}

/// Only compared with others of the same process.
fn digest(metadata: &Value) -> u64 {
    let entries = |field: &str| metadata[field].as_object().into_iter().flatten();
    let annotations =
        entries("annotations").filter(|(key, _)| PREFIXES.iter().any(|prefix| key.contains(prefix)));
    let mut hasher = DefaultHasher::new();
    for (key, value) in entries("labels").chain(annotations) {
        (key, value.as_str()).hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns the workload of a pod, and the UID of its controller.
///
/// The Deployment of a ReplicaSet and the CronJob of a Job follow from their names, as for the name of a service.
fn workload_of(pod: &Pod<'_>, namespace: &str, name: &str) -> (Workload, Option<String>) {
    let mut references = pod.metadata.owner_references.iter();
    let Some(controller) = references.find(|reference| reference.controller == Some(true)) else {
        return (Workload::new("Pod", namespace, name), None);
    };
    let chain = workload::chain(pod, namespace, false, &NotLookedUp);
    let named = |kind: &str, name: Option<&str>| name.map(|name| Workload::new(kind, namespace, name));
    let above = match &*controller.kind {
        "ReplicaSet" => named("Deployment", chain.attribute("k8s.deployment.name"))
            .or_else(|| named("Rollout", chain.controller.as_deref())),
        "Job" => named("CronJob", chain.attribute("k8s.cronjob.name")),
        _ => None,
    };
    let own = || Workload::new(&controller.kind, namespace, &controller.name);
    (above.unwrap_or_else(own), Some(controller.uid.to_string()))
}

/// Owners are derived from names only.
struct NotLookedUp;

impl Owners for NotLookedUp {
    fn look_up(&self, _: OwnerQuery<'_>) -> Lookup {
        Lookup::Unknown
    }
}

/// Fields of a container that injection changes in a way that cannot be undone, such as by adding to a variable.
/// A pod that was injected is decided on without them: what they decide was decided then.
const CHANGED: [&str; 2] = ["env", "volumeMounts"];

/// Fields of a container that no decision reads.
const UNREAD: [&str; 14] = [
    "args",
    "command",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "startupProbe",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "workingDir",
];

/// Fields of a pod's specification that no decision reads.
const UNREAD_OF_POD: [&str; 15] = [
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostAliases",
    "hostname",
    "imagePullSecrets",
    "preemptionPolicy",
    "priority",
    "readinessGates",
    "schedulerName",
    "schedulingGates",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
];

/// The JSON of a pod without its agents, its stamp and its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    text: Box<str>,
    detail: Detail,
}

/// How much of the pod is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// Its metadata.
    Metadata,
    /// What injection has not changed.
    Unchanged,
    /// All.
    Whole,
}

impl Shape {
    /// Returns the shape of a pod.
    pub fn of(pod: &Value, is_injected: bool) -> Self {
        let mut spec = without(&pod["spec"], &UNREAD_OF_POD);
        for list in ["initContainers", "containers"] {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            for container in containers {
                *container = without(container, &UNREAD);
            }
        }
        if is_injected {
            undo(&mut spec);
        }
        let detail = if is_injected { Detail::Unchanged } else { Detail::Whole };
        Self { text: text(&pod["metadata"], &spec), detail }
    }

    /// Returns the shape of a pod of which only the metadata is known.
    pub fn of_metadata(metadata: &Value) -> Self {
        let spec = json!({"containers": [{"name": "unknown", "image": "unknown"}]});
        Self { text: text(metadata, &spec), detail: Detail::Metadata }
    }

    /// Returns whether more is known of it than of another one of the same template.
    pub fn is_better_than(&self, other: &Self) -> bool {
        self.detail > other.detail
    }

    /// Parses the pod.
    ///
    /// # Errors
    /// If it is not a pod.
    pub fn pod(&self) -> Result<Pod<'_>, serde_json::Error> {
        Pod::parse(&self.text)
    }
}

/// Returns a copy of an object without these fields.
fn without(object: &Value, fields: &[&str]) -> Value {
    let kept =
        object.as_object().into_iter().flatten().filter(|(field, _)| !fields.contains(&field.as_str()));
    kept.map(|(field, value)| (field.clone(), value.clone())).collect::<Map<_, _>>().into()
}

fn text(metadata: &Value, spec: &Value) -> Box<str> {
    let text = json!({"metadata": unstamped(metadata), "spec": spec}).to_string();
    // A copy of the exact length: made smaller in place, it might keep the room that it had for growing.
    text.as_str().into()
}

/// Removes what was injected, and what cannot be told from it.
fn undo(spec: &mut Value) {
    for list in ["initContainers", "containers"] {
        let Some(containers) = spec[list].as_array_mut() else { continue };
        let is_agent = |container: &Value| {
            is_mark(is_init(list, container), container["name"].as_str().unwrap_or_default())
        };
        containers.retain(|container| !is_agent(container));
        for fields in containers.iter_mut().filter_map(Value::as_object_mut) {
            fields.retain(|field, _| !CHANGED.contains(&field.as_str()));
        }
    }
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("volumes");
    }
}

/// Returns metadata without the stamp.
fn unstamped(metadata: &Value) -> Value {
    let mut kept = json!({});
    for field in ["name", "namespace", "labels", "annotations", "ownerReferences"] {
        if let Some(value) = metadata.get(field) {
            kept[field] = value.clone();
        }
    }
    for (field, key) in [("labels", LABEL), ("annotations", STATUS), ("annotations", MESSAGE)] {
        if let Some(entries) = kept[field].as_object_mut() {
            entries.remove(key);
        }
    }
    kept
}
