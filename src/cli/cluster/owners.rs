//! The workloads that own pods.

use std::collections::HashMap;

use serde_json::Value;

use super::subject::Subject;
use otel_webhook_inject::workload::OwnerKind;

/// The controllers of ReplicaSets and Jobs: group, kind and name.
#[derive(Debug, Default)]
pub struct Owners(HashMap<(OwnerKind, String, String), (String, String, String)>);

impl Owners {
    /// Adds the metadata of a ReplicaSet or a Job.
    pub fn put(&mut self, kind: OwnerKind, object: &Value) {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        if let Some((group, made_by, name)) = controller(object) {
            let controller = (group.to_owned(), made_by.to_owned(), name.to_owned());
            self.0.insert((kind, text("namespace"), text("name")), controller);
        }
    }

    /// Returns the workload that owns a pod, and whether workloads of its kind are listed themselves. A pod without
    /// a controller is its own workload.
    pub fn of(&self, pod: &Value) -> (Subject, bool) {
        let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
        let namespace = text("namespace");
        let Some((group, kind, name)) = controller(pod) else {
            return (Subject::new("Pod", namespace, text("name")), false);
        };
        let Some(owner) = owner_kind(group, kind) else {
            let is_listed = group == "apps" && ["StatefulSet", "DaemonSet"].contains(&kind);
            return (Subject::new(kind, namespace, name), is_listed);
        };
        let subject = match self.0.get(&(owner, namespace.to_owned(), name.to_owned())) {
            Some((group, made_by, name)) if (&**group, &**made_by) == maker(owner) => {
                Subject::new(made_by, namespace, name)
            }
            _ => Subject::new(kind, namespace, name),
        };
        (subject, true)
    }

    /// Returns the controller of a pod, and the controller of that, if there is one.
    pub fn chain(&self, pod: &Value) -> Vec<Subject> {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let Some((group, kind, name)) = controller(pod) else { return Vec::new() };
        let above = owner_kind(group, kind)
            .and_then(|owner| self.0.get(&(owner, namespace.to_owned(), name.to_owned())));
        let above = above.map(|(_, kind, name)| Subject::new(kind, namespace, name));
        [Some(Subject::new(kind, namespace, name)), above].into_iter().flatten().collect()
    }
}

/// The controllers of ReplicaSets and Jobs: group and kind.
fn maker(kind: OwnerKind) -> (&'static str, &'static str) {
    match kind {
        OwnerKind::ReplicaSet => ("apps", "Deployment"),
        OwnerKind::Job => ("batch", "CronJob"),
    }
}

fn owner_kind(group: &str, kind: &str) -> Option<OwnerKind> {
    match (group, kind) {
        ("apps", "ReplicaSet") => Some(OwnerKind::ReplicaSet),
        ("batch", "Job") => Some(OwnerKind::Job),
        _ => None,
    }
}

/// Returns group, kind and name of the controller.
pub fn controller(object: &Value) -> Option<(&str, &str, &str)> {
    let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owner = references.into_iter().find(|reference| reference["controller"] == true)?;
    let group = owner["apiVersion"].as_str()?.split_once('/').map_or("", |(group, _)| group);
    Some((group, owner["kind"].as_str()?, owner["name"].as_str()?))
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
        for (kind, name, expected, is_listed) in [
            ("ReplicaSet", "order-5d", ("Deployment", "order"), true),
            ("ReplicaSet", "cart-6c", ("ReplicaSet", "cart-6c"), true),
            ("Job", "report-1", ("CronJob", "report"), true),
            ("Job", "once", ("Job", "once"), true),
            ("StatefulSet", "db", ("StatefulSet", "db"), true),
            ("SparkApplication", "pi", ("SparkApplication", "pi"), false),
        ] {
            let (subject, listed) = owners.of(&owned("p", kind, name));
            assert_eq!(subject, Subject::new(expected.0, "shop", expected.1));
            assert_eq!(listed, is_listed, "{kind}");
        }
        let names = |pod: &Value| owners.chain(pod).iter().map(ToString::to_string).collect::<Vec<_>>();
        let rollout = ["ReplicaSet shop/cart-6c", "Rollout shop/cart"];
        assert_eq!(names(&owned("p", "ReplicaSet", "cart-6c")), rollout);
        assert_eq!(names(&owned("p", "StatefulSet", "db")), ["StatefulSet shop/db"]);
        let bare = json!({"metadata": {"namespace": "shop", "name": "p"}});
        assert_eq!(owners.of(&bare), (Subject::new("Pod", "shop", "p"), false));
    }
}
