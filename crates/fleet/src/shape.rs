//! A pod as it was before injection, as far as the decision about a new one in its place depends on it.

use otel_webhook_inject::{LABEL, MESSAGE, STATUS, pod::Pod};
use serde_json::{Map, Value, json};

use crate::injected::{is_init, is_mark};

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
