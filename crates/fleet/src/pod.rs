//! A running pod, reduced to what its states depend on.
//!
//! The state of a language is found by comparing what the pod has with what a new pod in its place would get. So
//! two things are kept of it: its agents, by its containers and its stamp, and the pod as it was before injection.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use otel_webhook_inject::{
    STATUS,
    pod::Pod,
    workload::{self, Lookup, OwnerQuery, Owners},
};
use serde_json::Value;

use crate::{
    failing::{self, PodStatus},
    injected::{self, By},
    origin,
    shape::Shape,
    state::Origin,
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
    /// What its kubelet says; nothing if only its metadata was read.
    pub status: PodStatus,
    /// The pod without what was injected.
    pub shape: Shape,
}

/// The agent of a language in a running pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Agent {
    /// The language.
    pub language: &'static str,
    /// The injector.
    pub by: By,
    /// `namespace/name` of the Instrumentation, by the stamp.
    pub instrumentation: Option<Box<str>>,
    /// The hash of the configuration, by the stamp.
    pub hash: Option<Box<str>>,
    /// The image of the agent; `None` for a language without one.
    pub image: Option<Box<str>>,
}

impl RunningPod {
    /// Reads a pod. `None` for one that has ended or is about to end, and for one that no API server reviews.
    pub fn read(pod: &Value) -> Option<Self> {
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        if ["Succeeded", "Failed"].contains(&phase) {
            return None;
        }
        let agents = agents(pod);
        let shape = Shape::of(pod, !agents.is_empty());
        let languages: Vec<_> = agents.iter().map(|agent| agent.language).collect();
        let status = failing::of(pod, &languages);
        Some(Self { agents: Some(agents), status, ..Self::with_shape(&pod["metadata"], shape)? })
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
        let template =
            [owner.as_deref().unwrap_or(&uid)].into_iter().chain(labels).collect::<Vec<_>>().join("/");
        Some(Self {
            workload,
            template,
            name,
            uid,
            created,
            digest: digest(metadata),
            resource_version: text("resourceVersion"),
            agents: None,
            status: PodStatus::default(),
            shape,
        })
    }
}

impl Agent {
    /// Returns the Instrumentation and the hash, as far as the stamp has them.
    pub fn origin(&self) -> Origin<'_> {
        Origin {
            instrumentation: self.instrumentation.as_deref().unwrap_or_default(),
            hash: self.hash.as_deref().unwrap_or_default(),
        }
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

/// Returns the agents of a pod, by its containers. Only their configurations are from the stamp, which may have been
/// copied with other annotations.
fn agents(pod: &Value) -> Vec<Agent> {
    let stamp = pod["metadata"]["annotations"][STATUS].as_str().unwrap_or_default();
    let entries: Vec<Value> = serde_json::from_str(stamp).unwrap_or_default();
    let agent = |(language, by)| {
        let entry = origin::injected(&entries, language).next();
        let said = |field: &str| entry.and_then(|entry| entry[field].as_str()).map(Into::into);
        let image = injected::image(pod, language).or_else(|| said("image"));
        let hash = origin::stamped(&entries, language);
        Agent { language, by, instrumentation: said("instrumentation"), hash, image }
    };
    injected::languages(pod).into_iter().map(agent).collect()
}
