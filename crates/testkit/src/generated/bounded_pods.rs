//! Pods for the generated namespaces, and the languages that they opt in to.

use serde_json::{Value, json};

use super::{
    choices::Choices,
    namespaces::{CLASSES, CPU, GPU, HUGE, MEMORY, Namespace, STORAGE},
};
use crate::models::amounts::quantity;

/// The pod of a number, without any annotation, for a namespace.
pub fn pod(number: u64, namespace: &Namespace) -> Value {
    let mut choices = Choices::new(number);
    // Most pods are written with the bounds in mind.
    let keeps = choices.chance(85);
    // Quotas want resources to be set, which LimitRanger may do, too.
    let style = if keeps && !namespace.quotas.is_empty() {
        [0, 1, 2, 4, 4][choices.below(5)]
    } else {
        choices.below(6)
    };
    let resources = |choices: &mut Choices| resources(choices, style, keeps.then_some(namespace));
    let names =
        [&["app"][..], &["app", "web"], &["app", "web", "proxy"]][[0, 0, 0, 1, 1, 2][choices.below(6)]];
    let container = |name: &str, resources: Value| json!({"name": name, "image": "registry.example.com/app:1", "resources": resources});
    let containers: Vec<Value> = names.iter().map(|name| container(name, resources(&mut choices))).collect();
    let mut init: Vec<Value> = Vec::new();
    for name in ["setup", "mesh"] {
        if choices.chance(20) {
            let mut one = container(name, resources(&mut choices));
            if choices.chance(50) {
                one["restartPolicy"] = "Always".into();
            }
            init.push(one);
        }
    }
    let mut spec = json!({"containers": containers});
    if choices.chance(30) {
        spec["restartPolicy"] = choices.one(&["OnFailure", "Never"]).into();
    }
    if !init.is_empty() {
        spec["initContainers"] = init.into();
    }
    match choices.below(14) {
        0 => spec["activeDeadlineSeconds"] = 600.into(),
        1 => spec["priorityClassName"] = CLASSES[0].into(),
        2 => spec["resources"] = json!({"limits": {"cpu": "4", "memory": "4Gi"}}),
        3 => spec["resources"] = json!({"requests": {"memory": "2Gi"}}),
        4 => {
            spec["resources"] =
                json!({"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}});
        }
        _ => {}
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "bounded-"}, "spec": spec})
}

fn resources(choices: &mut Choices, style: usize, bounds: Option<&Namespace>) -> Value {
    let mut resources = json!({"requests": {}, "limits": {}});
    if style == 0 {
        // Left to LimitRanger.
        return json!({});
    }
    for (name, amounts, percent) in
        [("cpu", &CPU[..], 85), ("memory", &MEMORY[..], 90), ("ephemeral-storage", &STORAGE[..], 10)]
    {
        let is_bounded = bounds.is_some_and(|bounds| !bounds.quotas.is_empty()) && percent > 50;
        if !is_bounded && !choices.chance(percent) {
            continue;
        }
        let (one, other) = (choices.below(amounts.len()), choices.below(amounts.len()));
        let (mut request, mut limit) =
            (amounts[one.min(other)].to_owned(), amounts[one.max(other)].to_owned());
        if let Some(bounds) = bounds {
            (request, limit) = kept(bounds, name, request, limit);
        }
        match style {
            1 => resources["limits"][name] = limit.into(),
            2 => {
                resources["limits"][name] = limit.clone().into();
                resources["requests"][name] = limit.into();
            }
            3 if choices.chance(60) => resources["requests"][name] = request.into(),
            _ => {
                resources["requests"][name] = request.into();
                resources["limits"][name] = limit.into();
            }
        }
    }
    if choices.chance(6) {
        resources["limits"][GPU] = choices.one(&["1", "2"]).into();
    }
    if choices.chance(3) {
        resources["limits"][HUGE] = "4Mi".into();
    }
    resources
}

/// A request and a limit that LimitRanges accept of a container, as far as one looks at them one by one.
fn kept(bounds: &Namespace, name: &str, request: String, limit: String) -> (String, String) {
    let amount = |text: &str| quantity(&text.into());
    let (mut request, mut limit) = (request, limit);
    let items =
        || bounds.ranges.iter().flat_map(|range| range["spec"]["limits"].as_array().into_iter().flatten());
    let of = |list: &'static str| {
        let own = items().filter(|item| item["type"] == "Container");
        own.filter_map(move |item| item[list].get(name).and_then(Value::as_str).map(str::to_owned))
    };
    for min in of("min") {
        for one in [&mut request, &mut limit] {
            if amount(one) < amount(&min) {
                one.clone_from(&min);
            }
        }
    }
    for max in of("max") {
        for one in [&mut request, &mut limit] {
            if amount(one) > amount(&max) {
                one.clone_from(&max);
            }
        }
    }
    let ratio = |item: &Value| item["maxLimitRequestRatio"].get(name).is_some();
    if items().any(ratio) {
        request.clone_from(&limit);
    }
    (request, limit)
}

/// What pods ask for; most often one language.
pub const ASKED: [&[&str]; 7] =
    [&["java"], &["python"], &["apache-httpd"], &["go"], &["go"], &["java", "go"], &["dotnet", "nodejs"]];

/// The same pod, asking for languages.
pub fn asking(pod: &Value, languages: &[&str]) -> Value {
    let mut pod = pod.clone();
    let prefix = "instrumentation.opentelemetry.io";
    let mut annotations = json!({
        format!("{prefix}/container-names"): "app", format!("{prefix}/otel-go-auto-target-exe"): "/app",
    });
    for language in languages {
        annotations[format!("{prefix}/inject-{language}")] = "true".into();
    }
    pod["metadata"]["annotations"] = annotations;
    pod
}

/// The resources of Go's sidecar, with the defaults of Instrumentations.
pub fn said_of_go(spec: &Value) -> Value {
    let mut said = spec["go"]["resourceRequirements"].clone();
    for (list, default) in [
        ("limits", json!({"cpu": "500m", "memory": "256Mi"})),
        ("requests", json!({"cpu": "50m", "memory": "64Mi"})),
    ] {
        if said[list].is_null() {
            said[list] = default;
        }
    }
    // A default gives way to what is said.
    for name in ["cpu", "memory"] {
        let (request, limit) = (said["requests"][name].clone(), said["limits"][name].clone());
        if !request.is_null() && !limit.is_null() && quantity(&request) > quantity(&limit) {
            let is_limit_said = !spec["go"]["resourceRequirements"]["limits"].is_null();
            if is_limit_said { said["requests"][name] = limit } else { said["limits"][name] = request }
        }
    }
    said
}
