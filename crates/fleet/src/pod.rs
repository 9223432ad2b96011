//! A running pod, reduced to what its states depend on.
//!
//! The state of a language is found by comparing what the pod has with what a new pod in its place would get. So
//! two things are kept of it: its agents, by its containers and its stamp, and the pod as it was before injection.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use jiff::Timestamp;
use otel_webhook_inject::{
    LABEL, MESSAGE, STATUS,
    pod::Pod,
    workload::{self, Lookup, OwnerQuery, Owners},
};
use serde_json::{Map, Value, json};

use crate::{
    failing::{self, PodStatus},
    heard::Sender,
    injected::{self, Agent, Decided, is_init, is_mark},
    workload::Workload,
};

/// What the keys of the annotations contain that decisions depend on.
const PREFIXES: [&str; 2] = ["opentelemetry.io/", "otel-webhook/"];

/// Fields of the metadata that the workload of a pod follows from.
const NAMING: [&str; 5] = ["name", "namespace", "labels", "annotations", "ownerReferences"];

/// Labels that tell the pods of one template from those of another: of Deployments, and of `StatefulSets` and
/// `DaemonSets`.
const TEMPLATE_LABELS: [&str; 2] = ["pod-template-hash", "controller-revision-hash"];

/// A running pod.
#[derive(Clone, Debug)]
pub struct RunningPod {
    /// Its workload.
    pub workload: Workload,
    /// What the pods of its workload with the same template share, as far as metadata shows it.
    pub template: u64,
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
    /// What was decided on its agents when it was created.
    pub decided: Vec<Decided>,
    /// The languages that were skipped when it was created, by its stamp, with the code of the reason.
    pub skipped: Vec<(String, String)>,
    /// The sentences about what was skipped and about probable mistakes, as of its creation.
    pub message: Option<String>,
    /// What its kubelet says; nothing if only its metadata was read.
    pub status: PodStatus,
    /// Since when it is Ready; `None` if it is not, or only its metadata was read.
    pub ready_since: Option<Timestamp>,
    /// The containers that send data.
    pub(crate) senders: Vec<Sender>,
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
        let senders = Sender::of(pod, &agents);
        let stamp = injected::stamp(pod);
        let decided = Decided::of(&stamp, &agents);
        let skipped = stamp.into_iter().filter(|entry| !entry.is_injected());
        let skipped = skipped.map(|entry| (entry.language.into_owned(), entry.outcome.into_owned()));
        let message = pod["metadata"]["annotations"][MESSAGE].as_str().map(str::to_owned);
        Some(Self {
            agents: Some(agents),
            decided,
            skipped: skipped.collect(),
            message,
            status,
            ready_since: failing::ready_since(pod),
            senders,
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
            let text = json!({"metadata": kept(metadata, &NAMING)}).to_string();
            // Mirror pods are not created through the API server, so no webhook reviews them.
            let pod = Pod::parse(&text).ok().filter(|pod| !pod.is_mirror())?;
            workload_of(&pod, &namespace, &name)
        };
        let labels = TEMPLATE_LABELS.map(|label| metadata["labels"][label].as_str());
        let template = hash(&(owner.as_ref().unwrap_or(&uid), labels));
        Some(Self {
            workload,
            template,
            name,
            uid,
            created,
            digest: digest(metadata),
            resource_version: text("resourceVersion"),
            agents: None,
            decided: Vec::new(),
            skipped: Vec::new(),
            message: None,
            status: PodStatus::default(),
            ready_since: None,
            senders: Vec::new(),
            shape,
        })
    }
}

fn digest(metadata: &Value) -> u64 {
    let entries = |field: &str| metadata[field].as_object().into_iter().flatten();
    let annotations = entries("annotations").filter(|(key, _)| is_read(key));
    hash(&entries("labels").chain(annotations).map(|(key, value)| (key, value.as_str())).collect::<Vec<_>>())
}

/// Only compared with others of the same process.
pub(crate) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
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

/// Fields of a container that decisions read.
const READ: [&str; 8] =
    ["name", "image", "restartPolicy", "env", "envFrom", "volumeMounts", "securityContext", "resources"];

/// Fields of a volume that decisions read.
const READ_OF_VOLUME: [&str; 5] = ["name", "secret", "configMap", "image", "ephemeral"];

/// Fields of a pod's specification that decisions read, but for `nodeName`: a new pod has no node yet.
const READ_OF_POD: [&str; 17] = [
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "containers",
    "hostPID",
    "initContainers",
    "nodeSelector",
    "os",
    "overhead",
    "priorityClassName",
    "resourceClaims",
    "resources",
    "restartPolicy",
    "securityContext",
    "serviceAccountName",
    "shareProcessNamespace",
    "volumes",
];

/// Labels that number the pods of a workload. Decisions treat them as alike.
const NUMBERS: [&str; 4] = [
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index",
    "spark-exec-id",
    "statefulset.kubernetes.io/pod-name",
];

/// The variable that decisions read the value of; of the others, they read the name and the source.
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// What the name of the volume with the token of the ServiceAccount begins with. The rest is random.
const TOKEN: &str = "kube-api-access-";

/// What most texts consist of. Each is kept as one byte, a control character, which JSON does not have.
const FRAGMENTS: [&str; 31] = [
    "\"annotations\":{\"instrumentation.opentelemetry.io/",
    "\"securityContext\":{\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"]}",
    "\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\",\"name\":\"kube-api-access-\",\"readOnly\":true}",
    "\"valueFrom\":{\"secretKeyRef\":{\"key\":\"",
    "\"valueFrom\":{\"configMapKeyRef\":{\"key\":\"",
    "\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"",
    "\"restartPolicy\":\"Always\",\"securityContext\":{",
    "\"resources\":{\"limits\":{\"cpu\":\"",
    "},\"requests\":{\"cpu\":\"",
    "\",\"memory\":\"",
    "\"resources\":{}",
    "\"readOnlyRootFilesystem\":",
    "\"runAsNonRoot\":true",
    "\"runAsUser\":",
    "\"initContainers\":[",
    "\"containers\":[{",
    "\"volumeMounts\":[{\"",
    "\"volumes\":[{\"",
    "\"secret\":{\"defaultMode\":420,\"secretName\":\"",
    "\"configMap\":{\"defaultMode\":420,\"name\":\"",
    "\"serviceAccountName\":\"",
    "mountPath\":\"/",
    "app.kubernetes.io/",
    "\"env\":[{",
    "\"envFrom\":[{",
    "\"image\":\"",
    "\"},{\"name\":\"",
    "\",\"name\":\"",
    "\"name\":\"",
    "},\"spec\":{",
    "\":\"",
];

/// Replaces fragments by the bytes that stand for them.
fn packed(text: &str) -> Arc<str> {
    let codes = (1..).map(|code: u8| char::from(code).to_string());
    let replace = |text: String, (fragment, code): (&&str, String)| text.replace(fragment, &code);
    FRAGMENTS.iter().zip(codes).fold(text.to_owned(), replace).into()
}

/// Reverses [`packed`].
fn unpacked(packed: &str) -> String {
    let mut text = String::with_capacity(3 * packed.len());
    for letter in packed.chars() {
        match (letter as usize).checked_sub(1).and_then(|code| FRAGMENTS.get(code)) {
            Some(fragment) => text.push_str(fragment),
            None => text.push(letter),
        }
    }
    text
}

/// What decisions read of a pod, without its agents: as packed texts, each of which many pods have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The labels.
    pub(crate) labels: Arc<str>,
    /// The annotations and the specification, as the members of an object.
    pub(crate) rest: Arc<str>,
    /// Whether the images of the containers are known.
    pub(crate) has_images: bool,
}

impl Shape {
    /// Returns the shape of a pod.
    fn of(pod: &Value, is_injected: bool) -> Self {
        let mut spec = reduced(&pod["spec"]);
        if is_injected {
            undo(&mut spec);
        }
        Self::with(&pod["metadata"], &spec, true)
    }

    /// Returns the shape of a pod of which only the metadata is known.
    pub fn of_metadata(metadata: &Value) -> Self {
        let spec = json!({"containers": [{"name": "unknown", "image": "unknown"}]});
        Self::with(metadata, &spec, false)
    }

    fn with(metadata: &Value, spec: &Value, has_images: bool) -> Self {
        let entries = |field: &str, is_read: fn(&str) -> bool| -> BTreeMap<&String, &Value> {
            let all = metadata[field].as_object().into_iter().flatten();
            all.filter(|(key, _)| ![LABEL, STATUS, MESSAGE].contains(&key.as_str()) && is_read(key)).collect()
        };
        let labels = entries("labels", |key| ![&NUMBERS[..], &TEMPLATE_LABELS].concat().contains(&key));
        let annotations = entries("annotations", is_read);
        let rest = format!("\"annotations\":{}}},\"spec\":{spec}", json!(annotations));
        Self { labels: packed(&json!(labels).to_string()), rest: packed(&rest), has_images }
    }

    /// Returns the pod as JSON.
    pub fn text(&self) -> String {
        format!("{{\"metadata\":{{\"labels\":{},{}}}", unpacked(&self.labels), unpacked(&self.rest))
    }

    /// Returns it with no more of the specification than the names of containers.
    pub(crate) fn shortened(&self) -> Self {
        let pod: Value = serde_json::from_str(&self.text()).unwrap_or_default();
        let mut spec = kept(&pod["spec"], &["initContainers", "containers"]);
        for list in ["initContainers", "containers"] {
            let all = items_of(&mut spec, list).iter_mut();
            all.for_each(|container| *container = kept(container, &["name", "restartPolicy"]));
        }
        Self::with(&pod["metadata"], &spec, false)
    }

    /// Returns the image of a container; `None` if it is not known.
    pub fn image(&self, container: &str) -> Option<String> {
        let text = self.text();
        let pod = Pod::parse(&text).ok().filter(|_| self.has_images)?;
        let mut all = pod.spec.init_containers.iter().chain(pod.spec.containers.iter());
        all.find(|one| *one.name == *container).map(|one| one.image.to_string())
    }
}

/// Whether decisions depend on an annotation.
fn is_read(annotation: &str) -> bool {
    PREFIXES.iter().any(|prefix| annotation.contains(prefix))
}

/// Returns what decisions read of a specification.
fn reduced(spec: &Value) -> Value {
    let mut spec = kept(spec, &READ_OF_POD);
    for list in ["initContainers", "containers"] {
        for container in items_of(&mut spec, list) {
            *container = kept(container, &READ);
            for variable in items_of(container, "env").iter_mut().filter(|one| one["name"] != ATTRIBUTES) {
                *variable = kept(variable, &["name", "valueFrom"]);
            }
            items_of(container, "volumeMounts").iter_mut().for_each(rename_token);
        }
    }
    for volume in items_of(&mut spec, "volumes") {
        *volume = kept(volume, &READ_OF_VOLUME);
        rename_token(volume);
    }
    if let Some(affinity) = spec.get_mut("affinity") {
        *affinity = kept(affinity, &["nodeAffinity"]);
        let required = "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        for term in affinity.pointer_mut(required).and_then(Value::as_array_mut).into_iter().flatten() {
            // Each pod of a DaemonSet names its node, by `matchFields`.
            *term = kept(term, &["matchExpressions"]);
        }
    }
    spec
}

fn rename_token(named: &mut Value) {
    if named["name"].as_str().is_some_and(|name| name.starts_with(TOKEN)) {
        named["name"] = TOKEN.into();
    }
}

/// Returns a copy of an object with these fields alone, in their order.
fn kept(object: &Value, fields: &[&str]) -> Value {
    let kept = fields.iter().filter_map(|field| Some(((*field).to_owned(), object.get(field)?.clone())));
    kept.collect::<Map<_, _>>().into()
}

fn items_of<'v>(object: &'v mut Value, list: &str) -> &'v mut [Value] {
    object.get_mut(list).and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

/// Removes what was injected, and what cannot be told from it.
fn undo(spec: &mut Value) {
    for list in ["initContainers", "containers"] {
        let is_agent = |container: &Value| {
            is_mark(is_init(list, container), container["name"].as_str().unwrap_or_default())
        };
        if let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) {
            containers.retain(|container| !is_agent(container));
            for fields in containers.iter_mut().filter_map(Value::as_object_mut) {
                fields.retain(|field, _| !CHANGED.contains(&field.as_str()));
            }
        }
    }
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|field, _| field != "volumes");
    }
}
