//! Namespaces with LimitRanges and ResourceQuotas. Some pods are rejected by them, and a good share
//! is accepted.

use serde_json::{Map, Value, json};

use super::choices::Choices;

/// How many pods there are for each namespace.
pub const PODS_OF_ONE: u64 = 20;

/// A namespace's bounds, by number; quotas have what is used of them.
pub struct Namespace {
    /// LimitRanges.
    pub ranges: Vec<Value>,
    /// ResourceQuotas, with their status.
    pub quotas: Vec<Value>,
    /// The specification of its Instrumentation.
    pub instrumentation: Value,
}

/// Amounts in order.
pub const CPU: [&str; 9] = ["0", "1m", "10m", "50m", "100m", "250m", "500m", "1", "2"];
/// Amounts in order.
pub const MEMORY: [&str; 9] = ["0", "16Mi", "32Mi", "64Mi", "100Mi", "128Mi", "256Mi", "512Mi", "1Gi"];
/// Enough for all agents: a pod whose limit holds none is skipped for that, whatever its namespace says.
/// Amounts in order.
pub const STORAGE: [&str; 4] = ["1Gi", "2Gi", "4Gi", "8Gi"];
/// A resource in whole units.
pub const GPU: &str = "example.com/gpu";
/// A resource with its own size.
pub const HUGE: &str = "hugepages-2Mi";

/// The namespace of a number.
pub fn namespace(number: u64) -> Namespace {
    let mut choices = Choices::new(number ^ 0x4c69_6d69_7452_616e);
    let count = [0, 1, 1, 1, 2, 3][choices.below(6)];
    let ranges = (0..count).map(|index| range(&mut choices, index)).collect();
    let count = [0, 0, 1, 1, 2][choices.below(5)];
    let quotas = (0..count).map(|index| quota(&mut choices, index)).collect();
    Namespace { ranges, quotas, instrumentation: instrumentation(&mut choices) }
}

fn range(choices: &mut Choices, index: usize) -> Value {
    let mut items = Vec::new();
    if choices.chance(80) {
        items.push(item(choices, "Container"));
    }
    if choices.chance(if items.is_empty() { 100 } else { 35 }) {
        items.push(item(choices, "Pod"));
    }
    json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": format!("range-{index}")}, "spec": {"limits": items}})
}

/// One item that the API server accepts: each list in order with the others.
fn item(choices: &mut Choices, kind: &str) -> Value {
    let mut item = json!({"type": kind});
    for (name, amounts, percent) in
        [("cpu", &CPU[..], 60), ("memory", &MEMORY[..], 70), ("ephemeral-storage", &STORAGE[..], 12)]
    {
        if choices.chance(percent) {
            bound(choices, &mut item, name, amounts);
        }
    }
    if choices.chance(6) {
        let most = choices.one(&["1", "4"]);
        item["max"][GPU] = most.into();
    }
    if choices.chance(3) {
        item["max"][HUGE] = "64Mi".into();
    }
    item
}

fn bound(choices: &mut Choices, item: &mut Value, name: &str, amounts: &[&str]) {
    let is_pod = item["type"] == "Pod";
    let count = amounts.len();
    let (low, high) = (choices.below(count / 2 + 1), count / 2 + choices.below(count - count / 2));
    let mut has_min = false;
    if choices.chance(45) {
        item["min"][name] = amounts[low].into();
        has_min = true;
    }
    let has_max = choices.chance(45);
    if has_max {
        let factor = if is_pod && !amounts[high].ends_with('m') { "4" } else { "" };
        let most = if factor.is_empty() { amounts[high].to_owned() } else { times_four(amounts[high]) };
        item["max"][name] = most.into();
    }
    // A ratio next to both has to be within what they span.
    if choices.chance(25) && !(has_min && has_max) {
        item["maxLimitRequestRatio"][name] = choices.one(&["1", "1.1", "1.5", "2", "3", "4", "10"]).into();
    }
    if !is_pod && choices.chance(45) {
        let default = low + choices.below(high - low + 1);
        item["default"][name] = amounts[default].into();
        if choices.chance(60) {
            item["defaultRequest"][name] = amounts[low + choices.below(default - low + 1)].into();
        }
    } else if !is_pod && choices.chance(20) {
        item["defaultRequest"][name] = amounts[low].into();
    }
}

fn times_four(amount: &str) -> String {
    let end = amount.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(amount.len());
    let (number, suffix) = amount.split_at(end);
    format!("{}{suffix}", number.parse::<u32>().expect("a number") * 4)
}

fn quota(choices: &mut Choices, index: usize) -> Value {
    let mut hard = Map::new();
    let mut used = Map::new();
    for (names, hards, useds) in [
        (["requests.cpu", "cpu"], ["1", "2", "4", "8"], ["0", "100m", "300m"]),
        (["requests.memory", "memory"], ["512Mi", "1Gi", "2Gi", "4Gi"], ["0", "100Mi", "200Mi"]),
        (["limits.cpu", "limits.cpu"], ["1", "2", "4", "8"], ["0", "250m", "500m"]),
        (["limits.memory", "limits.memory"], ["512Mi", "1Gi", "2Gi", "8Gi"], ["0", "100Mi", "256Mi"]),
        (
            ["requests.ephemeral-storage", "limits.ephemeral-storage"],
            ["1Gi", "2Gi", "4Gi", "8Gi"],
            ["0", "0", "10Mi"],
        ),
        (["requests.example.com/gpu", "requests.hugepages-2Mi"], ["0", "2", "4", "8Mi"], ["0", "0", "0"]),
    ] {
        if choices.chance(30) {
            let name = choices.one(&names);
            hard.insert(name.into(), choices.one(&hards).into());
            used.insert(name.into(), choices.one(&useds).into());
        }
    }
    if choices.chance(15) {
        hard.insert("pods".into(), choices.one(&["0", "9", "9", "9"]).into());
        used.insert("pods".into(), "0".into());
    }
    let mut spec = json!({"hard": hard});
    let scope = |scope: &str| json!([scope]);
    let expression = |operator: &str, values: &[&str]| {
        let mut one = json!({"scopeName": "PriorityClass", "operator": operator});
        if !values.is_empty() {
            one["values"] = json!(values);
        }
        json!({"matchExpressions": [one]})
    };
    match choices.below(10) {
        0 => spec["scopes"] = scope("Terminating"),
        1 => spec["scopes"] = scope("NotTerminating"),
        2 | 3 => spec["scopes"] = scope("NotBestEffort"),
        4 => {
            // Kubernetes takes no other bound of such pods.
            spec = json!({"hard": {"pods": choices.one(&["0", "9", "9"])}, "scopes": ["BestEffort"]});
            used = Map::from_iter([("pods".to_owned(), "0".into())]);
        }
        5 => spec["scopeSelector"] = expression("In", &[CLASSES[0]]),
        6 => spec["scopeSelector"] = expression("DoesNotExist", &[]),
        _ => {}
    }
    if spec.as_object().is_some_and(|spec| spec.len() > 1) {
        // With a scope Kubernetes takes bounds of CPU, memory and pods alone.
        let is_scoped = |name: &str| name == "pods" || name.ends_with("cpu") || name.ends_with("memory");
        spec["hard"].as_object_mut().into_iter().for_each(|hard| hard.retain(|name, _| is_scoped(name)));
        used.retain(|name, _| is_scoped(name));
    }
    if spec["hard"].as_object().is_none_or(Map::is_empty) {
        spec["hard"] = json!({"requests.cpu": "4"});
        used = Map::from_iter([("requests.cpu".to_owned(), "0".into())]);
    }
    let status = json!({"hard": spec["hard"], "used": used});
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": format!("quota-{index}")}, "spec": spec, "status": status})
}

/// Priority classes that every cluster has for pods of any namespace, or that the tests make.
pub const CLASSES: [&str; 1] = ["bounded-high"];

fn instrumentation(choices: &mut Choices) -> Value {
    let mut spec = json!({"exporter": {"endpoint": "http://collector:4318"}});
    for (field, resources) in [
        ("java", "resources"),
        ("python", "resourceRequirements"),
        ("go", "resourceRequirements"),
        ("apacheHttpd", "resourceRequirements"),
    ] {
        let said = match choices.below(9) {
            0 => json!({"limits": {}, "requests": {}}),
            1 => json!({"limits": {"memory": "1Gi"}}),
            2 => json!({"requests": {"cpu": "200m", "memory": "16Mi"}, "limits": {}}),
            3 => {
                json!({"requests": {"cpu": "0", "memory": "32Mi"}, "limits": {"cpu": "3", "memory": "100Mi", "ephemeral-storage": "1Gi"}})
            }
            4 => json!({"requests": {"cpu": "10m", "memory": "32Mi", "ephemeral-storage": "50Mi"}}),
            5 => json!({"limits": {"cpu": "100m", "memory": "128Mi", GPU: "1"}, "requests": {GPU: "1"}}),
            6 => {
                json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "512Mi"}})
            }
            _ => continue,
        };
        spec[field] = json!({resources: said});
    }
    spec
}
