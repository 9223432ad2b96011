//! The workloads that own pods.

use std::collections::HashMap;

use serde_json::Value;

use otel_webhook_inject::workload::OwnerKind;
use otel_webhook_server::subject::Subject;

/// The controllers of ReplicaSets and Jobs.
#[derive(Debug, Default)]
pub struct Owners(HashMap<(OwnerKind, String, String), Controller>);

/// A controller in an owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Controller {
    api_version: String,
    kind: String,
    name: String,
}

/// The workload that owns a pod.
#[derive(Debug, PartialEq, Eq)]
pub struct Owned {
    /// The workload.
    pub subject: Subject,
    /// How its template is read.
    pub listed: Listed,
}

/// How the template of a workload is read.
#[derive(Debug, PartialEq, Eq)]
pub enum Listed {
    /// Workloads of its kind are always listed.
    Always,
    /// Its kind is known from owner references only: version, and kind.
    ByOwner(String, String),
    /// The pod is its own workload.
    Never,
}

impl Owners {
    /// Adds the metadata of a ReplicaSet or a Job.
    pub fn put(&mut self, kind: OwnerKind, object: &Value) {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        if let Some(controller) = referenced(object) {
            self.0.insert((kind, text("namespace"), text("name")), controller);
        }
    }

    /// Returns the workload that owns a pod. A pod without a controller is its own workload.
    pub fn of(&self, pod: &Value) -> Owned {
        let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
        let namespace = text("namespace");
        let Some(controller) = referenced(pod) else {
            return Owned { subject: Subject::new("Pod", namespace, text("name")), listed: Listed::Never };
        };
        let workload = self.above(namespace, &controller).cloned().unwrap_or(controller);
        let listed = match (workload.group(), &*workload.kind) {
            ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
            | ("batch", "Job" | "CronJob") => Listed::Always,
            _ => Listed::ByOwner(workload.api_version, workload.kind.clone()),
        };
        Owned { subject: Subject::new(&workload.kind, namespace, &workload.name), listed }
    }
}

impl Owners {
    /// Returns the controller of a pod, and the controller of that, if there is one.
    pub fn chain(&self, pod: &Value) -> Vec<Subject> {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let Some(controller) = referenced(pod) else { return Vec::new() };
        let subject = |one: &Controller| Subject::new(&one.kind, namespace, &one.name);
        let above = self.above(namespace, &controller).map(subject);
        [Some(subject(&controller)), above].into_iter().flatten().collect()
    }

    /// Returns the controller of a ReplicaSet or a Job.
    fn above(&self, namespace: &str, controller: &Controller) -> Option<&Controller> {
        self.0.get(&(queried(controller)?, namespace.to_owned(), controller.name.clone()))
    }
}

impl Controller {
    fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// Returns the name of the ReplicaSet that controls a pod.
pub fn replica_set(pod: &Value) -> Option<String> {
    let controller = referenced(pod)?;
    (queried(&controller) == Some(OwnerKind::ReplicaSet)).then_some(controller.name)
}

fn queried(controller: &Controller) -> Option<OwnerKind> {
    match (controller.group(), &*controller.kind) {
        ("apps", "ReplicaSet") => Some(OwnerKind::ReplicaSet),
        ("batch", "Job") => Some(OwnerKind::Job),
        _ => None,
    }
}

/// Returns group, kind and name of the controller.
pub fn controller(object: &Value) -> Option<(String, String, String)> {
    let controller = referenced(object)?;
    Some((controller.group().to_owned(), controller.kind, controller.name))
}

fn referenced(object: &Value) -> Option<Controller> {
    let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owner = references.into_iter().find(|reference| reference["controller"] == true)?;
    let text = |field: &str| owner[field].as_str().map(str::to_owned);
    Some(Controller { api_version: text("apiVersion")?, kind: text("kind")?, name: text("name")? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owned(name: &str, kind: &str, by: &str) -> Value {
        let group = match kind {
            "Job" | "CronJob" => "batch",
            "Rollout" | "SparkApplication" | "CloneSet" => "example.com",
            _ => "apps",
        };
        let owner =
            json!({"apiVersion": format!("{group}/v1"), "kind": kind, "name": by, "controller": true});
        json!({"metadata": {"namespace": "shop", "name": name, "ownerReferences": [owner]}})
    }

    #[test]
    fn pods_belong_to_the_owner_of_their_controller() {
        let mut owners = Owners::default();
        owners.put(OwnerKind::ReplicaSet, &owned("order-5d", "Deployment", "order"));
        owners.put(OwnerKind::ReplicaSet, &owned("cart-6c", "Rollout", "cart"));
        owners.put(OwnerKind::Job, &owned("report-1", "CronJob", "report"));
        let by_owner = |kind: &str| Listed::ByOwner("example.com/v1".to_owned(), kind.to_owned());
        for (kind, name, expected, listed) in [
            ("ReplicaSet", "order-5d", ("Deployment", "order"), Listed::Always),
            ("ReplicaSet", "cart-6c", ("Rollout", "cart"), by_owner("Rollout")),
            ("ReplicaSet", "alone-7d", ("ReplicaSet", "alone-7d"), Listed::Always),
            ("Job", "report-1", ("CronJob", "report"), Listed::Always),
            ("Job", "once", ("Job", "once"), Listed::Always),
            ("StatefulSet", "db", ("StatefulSet", "db"), Listed::Always),
            ("SparkApplication", "pi", ("SparkApplication", "pi"), by_owner("SparkApplication")),
        ] {
            let subject = Subject::new(expected.0, "shop", expected.1);
            assert_eq!(owners.of(&owned("p", kind, name)), Owned { subject, listed });
        }
        assert_eq!(replica_set(&owned("p", "ReplicaSet", "cart-6c")).as_deref(), Some("cart-6c"));
        assert_eq!(replica_set(&owned("p", "StatefulSet", "db")), None);
        let names = |pod: &Value| owners.chain(pod).iter().map(ToString::to_string).collect::<Vec<_>>();
        let rollout = ["ReplicaSet shop/cart-6c", "Rollout shop/cart"];
        assert_eq!(names(&owned("p", "ReplicaSet", "cart-6c")), rollout);
        assert_eq!(names(&owned("p", "StatefulSet", "db")), ["StatefulSet shop/db"]);
        let bare = json!({"metadata": {"namespace": "shop", "name": "p"}});
        let subject = Subject::new("Pod", "shop", "p");
        assert_eq!(owners.of(&bare), Owned { subject, listed: Listed::Never });
    }
}
