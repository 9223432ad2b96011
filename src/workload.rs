//! The objects of a document, and their pods and pod templates.

use std::collections::BTreeMap;

use serde_json::Value;

use otel_webhook_api::{ANNOTATION_PREFIX, Version};
use otel_webhook_inject::{
    language::{LANGUAGES, Language},
    mistakes::{self, Mistake},
    template::Workload,
};
use otel_webhook_store::manifest::{TypeMeta, item_type};

/// Visits the workloads of an object, with their mistakes: the object itself, or the items of a list.
pub fn each(object: &mut Value, visit: &mut dyn FnMut(Workload<'_>, Vec<Mistake>)) {
    each_object(object, &mut |object, object_type| {
        let mistakes = mistakes::of(object, &object_type.api_version, &object_type.kind);
        if let Some(workload) = Workload::of(object, &object_type.api_version, &object_type.kind) {
            visit(workload, mistakes);
        }
    });
}

/// Returns the paths of the pod's own annotations that opt in, by language.
pub fn fields(workload: &Workload<'_>) -> BTreeMap<&'static str, String> {
    let annotations = &workload.pod["metadata"]["annotations"];
    let field = |language: &&'static Language| {
        let key = format!("{ANNOTATION_PREFIX}{}", language.inject);
        let is_own = annotations[&key].is_string();
        is_own.then(|| (language.name, format!("{}[{key}]", workload.path("metadata.annotations"))))
    };
    LANGUAGES.iter().filter_map(field).collect()
}

/// Adds the namespaces of an object that have mistakes in their annotations or labels.
pub fn mistaken_namespaces(object: &mut Value, found: &mut Vec<(String, Vec<Mistake>)>) {
    each_object(object, &mut |object, object_type| {
        if (&*object_type.api_version, &*object_type.kind) == ("v1", "Namespace") {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            found.push((name, mistakes::of(object, "v1", "Namespace")));
        }
    });
    found.retain(|(_, mistakes)| !mistakes.is_empty());
}

/// Visits every object with its type. Items of a typed list have the type of the list.
pub fn each_object(object: &mut Value, visit: &mut dyn FnMut(&mut Value, &TypeMeta)) {
    let said = TypeMeta::of(object);
    walk(object, said.as_ref(), visit);
}

fn walk(object: &mut Value, object_type: Option<&TypeMeta>, visit: &mut dyn FnMut(&mut Value, &TypeMeta)) {
    let Some(object_type) = object_type else { return };
    let Some(item_type) = item_type(object) else {
        return visit(object, object_type);
    };
    for item in object.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        let said = TypeMeta::of(item);
        walk(item, Some(said.as_ref().unwrap_or(&item_type)), visit);
    }
}

/// Returns whether this is the type of Instrumentations.
pub fn is_instrumentation(object_type: &TypeMeta) -> bool {
    Version::of(&object_type.api_version).is_some() && object_type.kind == "Instrumentation"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use otel_webhook_inject::template::TEMPLATES;

    fn found(mut object: Value) -> Vec<(String, String, Option<String>)> {
        let mut found = Vec::new();
        each(&mut object, &mut |workload, _| {
            let owner = workload.template.and_then(|template| template.owner);
            found.push((workload.kind, workload.name, owner.map(|owner| owner.name.to_string())));
        });
        found
    }

    fn one(kind: &str, name: &str, owner: Option<&str>) -> Vec<(String, String, Option<String>)> {
        vec![(kind.to_owned(), name.to_owned(), owner.map(str::to_owned))]
    }

    #[test]
    fn pods_of_a_template_are_owned_by_its_workload() {
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
    fn a_pod_is_a_workload_with_or_without_a_name() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}});
        assert_eq!(found(pod), one("Pod", "a-", None));
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "j-"},
            "spec": {"template": {}}});
        assert_eq!(found(job), one("Job", "j-", None));
    }

    #[test]
    fn nested_lists_are_visited_and_typed_lists_set_the_kind_of_their_items() {
        let pods = json!({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}]});
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [pods, null, 3, {"kind": "Pod"}]});
        assert_eq!(found(list), one("Pod", "a", None));
    }

    #[test]
    fn other_groups_and_objects_without_a_template_are_skipped() {
        let other = json!({"apiVersion": "example.com/v1", "kind": "Deployment", "spec": {"template": {}}});
        assert!(found(other).is_empty());
        let bare = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": "none"}});
        assert!(found(bare).is_empty());
    }
}
