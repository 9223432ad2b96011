//! Reviews to answer, and what is stored around them.

use otel_webhook_api::ANNOTATION_PREFIX;
use serde_json::{Value, json};

use crate::files;

/// The namespace of every pod.
pub const NAMESPACE: &str = "shop";

/// The container of the captured pod that is injected.
pub const TARGET: &str = "order";

/// The review of 9.9 KB, as an API server sent it, that speed is measured with.
pub fn usual() -> Value {
    captured("deployment-pod-create")
}

/// The usual review with so many containers, each like the one that is injected, as many of them targets.
pub fn of_containers(containers: usize, targets: usize) -> Value {
    let mut review = usual();
    let object = &mut review["request"]["object"];
    let list = object["spec"]["containers"].as_array().expect("containers");
    let like = list.iter().find(|one| one["name"] == TARGET).expect("the container").clone();
    let name = |index: usize| format!("{TARGET}-{index}");
    let named = |index| {
        let mut container = like.clone();
        container["name"] = name(index).into();
        container
    };
    object["spec"]["containers"] = (0..containers).map(named).collect();
    let list: Vec<_> = (0..targets).map(name).collect();
    annotate(object, "container-names", &list.join(","));
    review
}

/// Sets an annotation under the prefix.
pub fn annotate(object: &mut Value, name: &str, value: &str) {
    object["metadata"]["annotations"][format!("{ANNOTATION_PREFIX}{name}")] = value.into();
}

/// The Instrumentation that belongs to the captured reviews.
pub fn instrumentation() -> Value {
    captured("instrumentation-create")["request"]["object"].take()
}

/// The same under another name, in another namespace, for pods that bear this label.
pub fn instrumentation_of(namespace: &str, name: &str, label: Option<(&str, &str)>) -> Value {
    let mut object = instrumentation();
    object["metadata"] = json!({"namespace": namespace, "name": name, "generation": 1});
    if let Some((key, value)) = label {
        object["spec"]["selector"] = json!({"matchLabels": {key: value}});
    }
    object
}

/// The usual review of a pod that does not opt in itself.
pub fn silent() -> Value {
    let mut review = usual();
    let annotations = review["request"]["object"]["metadata"]["annotations"].as_object_mut();
    annotations.expect("annotations").retain(|key, _| !key.starts_with(ANNOTATION_PREFIX));
    review
}

/// So many Instrumentations of the pod's namespace that opt in to Java by their selectors, one of them for the pod. The
/// others are for other apps, or for all pods with a lower priority.
pub fn opting_in(count: usize) -> Vec<Value> {
    let of = |index: usize| {
        let (app, all) = (format!("app-{index:05}"), index % 2 == 1);
        let app = if index == count / 2 { "order" } else { &app };
        let label = Some(("app", app)).filter(|_| index == count / 2 || !all);
        let mut object = instrumentation_of(NAMESPACE, &format!("inst-{index:05}"), label);
        object["spec"]["inject"] = json!(["java"]);
        object["spec"]["priority"] = index.into();
        if label.is_none() {
            object["spec"]["selector"] = json!({});
        }
        object
    };
    (0..count).map(of).collect()
}

/// A review as an API server sent it.
pub fn captured(name: &str) -> Value {
    serde_json::from_str(&files::captured(name)).expect("JSON")
}
