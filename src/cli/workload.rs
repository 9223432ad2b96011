//! The pods and pod templates of a Kubernetes object.

use serde_json::Value;

use super::objects;
use crate::{
    inject::{
        pod::{OwnerReference, Pod},
        text::{List, Text},
    },
    manifest::TypeMeta,
};

/// A pod, or an object that makes pods from a template.
pub struct Workload<'v> {
    /// Its kind.
    pub kind: String,
    /// Its name, or what its name will begin with.
    pub name: String,
    /// The namespace that it names itself.
    pub namespace: Option<String>,
    /// What the object's pods will have beside what the template says; none for a pod.
    pub template: Option<Template>,
    /// The pod, or the template.
    pub pod: &'v mut Value,
}

/// What is known of the pods of a template that do not exist yet.
pub struct Template {
    owner: Option<OwnerReference<'static>>,
}

/// The kinds that make pods: group, kind, and where the template is.
const TEMPLATES: [(&str, &str, &str); 6] = [
    ("apps", "Deployment", "/spec/template"),
    ("apps", "StatefulSet", "/spec/template"),
    ("apps", "DaemonSet", "/spec/template"),
    ("apps", "ReplicaSet", "/spec/template"),
    ("batch", "Job", "/spec/template"),
    ("batch", "CronJob", "/spec/jobTemplate/spec/template"),
];

/// Visits the workloads of an object: itself, or the items of a list.
pub fn each(object: &mut Value, visit: &mut dyn FnMut(Workload<'_>)) {
    objects::each(object, &mut |object, object_type| {
        if let Some(workload) = workload(object, object_type) {
            visit(workload);
        }
    });
}

fn workload<'v>(object: &'v mut Value, object_type: &TypeMeta) -> Option<Workload<'v>> {
    let TypeMeta { api_version, kind } = object_type;
    let is_pod = api_version == "v1" && kind == "Pod";
    let row = TEMPLATES.iter().find(|(group, known, _)| object_type.group() == *group && kind == known);
    let path = if is_pod { "" } else { row?.2 };
    let text = |field: &str| {
        let text = object["metadata"][field].as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    let (name, namespace, uid) = (text("name"), text("namespace"), text("uid"));
    let shown = name.clone().or_else(|| text("generateName")).unwrap_or_default();
    let owner = name.map(|name| OwnerReference {
        api_version: owned(api_version.clone()),
        kind: owned(kind.clone()),
        name: owned(name),
        uid: owned(uid.unwrap_or_default()),
        controller: Some(true),
    });
    let template = (!is_pod).then_some(Template { owner });
    let pod = object.pointer_mut(path).filter(|pod| pod.is_object())?;
    Some(Workload { kind: kind.clone(), name: shown, namespace, template, pod })
}

fn owned(text: String) -> Text<'static> {
    Text(text.into())
}

impl Template {
    /// Gives the view of a template what its pods will have, as far as it is
    /// known. Controllers take labels and annotations from a template, and
    /// make up the rest of a pod's metadata.
    pub fn dress(&self, pod: &mut Pod<'_>) {
        pod.metadata.name = Text::default();
        pod.metadata.generate_name = Text::default();
        pod.metadata.owner_references = List(self.owner.iter().cloned().collect());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(mut object: Value) -> Vec<(String, String, Option<String>)> {
        let mut found = Vec::new();
        each(&mut object, &mut |workload| {
            let owner = workload.template.and_then(|template| template.owner);
            found.push((workload.kind, workload.name, owner.map(|owner| owner.name.to_string())));
        });
        found
    }

    fn one(kind: &str, name: &str, owner: Option<&str>) -> Vec<(String, String, Option<String>)> {
        vec![(kind.to_owned(), name.to_owned(), owner.map(str::to_owned))]
    }

    #[test]
    fn every_kind_that_makes_pods_owns_the_pods_of_its_template() {
        for (group, kind, path) in TEMPLATES {
            let mut object =
                json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": "a"}});
            let fields: Vec<_> = path.split('/').skip(1).collect();
            let template =
                fields.iter().rev().fold(json!({"spec": {}}), |inner, field| json!({*field: inner}));
            object["spec"] = template["spec"].clone();
            assert_eq!(found(object), one(kind, "a", Some("a")));
        }
    }

    #[test]
    fn a_pod_is_its_own_and_a_name_may_be_made_up_later() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}});
        assert_eq!(found(pod), one("Pod", "a-", None));
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "j-"},
            "spec": {"template": {}}});
        assert_eq!(found(job), one("Job", "j-", None));
    }

    #[test]
    fn lists_within_lists_are_opened_and_a_typed_list_gives_its_items_their_kind() {
        let pods = json!({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}]});
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [pods, null, 3, {"kind": "Pod"}]});
        assert_eq!(found(list), one("Pod", "a", None));
    }

    #[test]
    fn kinds_of_other_groups_and_objects_without_a_template_are_left_alone() {
        let other = json!({"apiVersion": "example.com/v1", "kind": "Deployment", "spec": {"template": {}}});
        assert!(found(other).is_empty());
        let bare = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": "none"}});
        assert!(found(bare).is_empty());
    }
}
