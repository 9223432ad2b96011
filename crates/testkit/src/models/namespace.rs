//! A model of admission in a namespace: defaults, LimitRanges and ResourceQuotas.
//!
//! It is written from Kubernetes' own rules and on plain JSON, and tests compare the product
//! with it. The end-to-end tests compare it with a real API server.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    amounts::{Amounts, Complaint, amounts, class, containers, effective, list, together},
    quota,
};

/// A namespace's LimitRanges and quotas, as objects; the quotas with their status.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// LimitRanges.
    pub ranges: Vec<Value>,
    /// ResourceQuotas, with their status.
    pub quotas: Vec<Value>,
}

fn each_container(pod: &mut Value, mut work: impl FnMut(&mut Value)) {
    for name in ["containers", "initContainers"] {
        let all = pod["spec"].get_mut(name).and_then(Value::as_array_mut);
        all.into_iter().flatten().for_each(&mut work);
    }
}

/// Sets what is not set.
fn fill(resources: &mut Value, list: &str, from: &Value) {
    for (name, value) in from.as_object().into_iter().flatten() {
        if resources[list].get(name).is_none() {
            resources[list][name] = value.clone();
        }
    }
}

/// The pod as the API server makes it of what is sent, LimitRanges included.
pub fn defaulted(pod: &Value, bounds: &Bounds) -> Value {
    let mut pod = pod.clone();
    default_by_api(&mut pod);
    for range in &bounds.ranges {
        for item in list(&range["spec"], "limits").filter(|item| item["type"] == "Container") {
            let item = default_item(item);
            each_container(&mut pod, |container| {
                fill(&mut container["resources"], "limits", &item["default"]);
                fill(&mut container["resources"], "requests", &item["defaultRequest"]);
            });
        }
    }
    pod
}

fn default_by_api(pod: &mut Value) {
    each_container(pod, |container| {
        let limits = container["resources"]["limits"].clone();
        fill(&mut container["resources"], "requests", &limits);
    });
    let (requests, limits) = together(pod);
    let whole = &pod["spec"]["resources"];
    if ["requests", "limits"].iter().any(|list| !amounts(&whole[list]).is_empty()) {
        let is_open = |name: &str| name.starts_with("hugepages-") && whole["requests"].get(name).is_none();
        let huge: BTreeMap<_, _> = limits
            .into_iter()
            .filter(|(name, _)| is_open(name))
            .map(|(name, most)| (name, format!("{most}m")))
            .collect();
        fill(&mut pod["spec"]["resources"], "limits", &json!(huge));
    }
    if amounts(&pod["spec"]["resources"]["limits"]).is_empty() {
        return;
    }
    let open: Vec<_> = requests.into_iter().filter(|(name, _)| name == "cpu" || name == "memory").collect();
    let open: BTreeMap<_, _> = open.into_iter().map(|(name, amount)| (name, format!("{amount}m"))).collect();
    let limits = pod["spec"]["resources"]["limits"].clone();
    fill(&mut pod["spec"]["resources"], "requests", &json!(open));
    fill(&mut pod["spec"]["resources"], "requests", &limits);
}

/// What the API server fills in when a LimitRange is stored.
fn default_item(item: &Value) -> Value {
    let mut item = item.clone();
    let (max, min) = (item["max"].clone(), item["min"].clone());
    fill(&mut item, "default", &max);
    let default = item["default"].clone();
    fill(&mut item, "defaultRequest", &default);
    fill(&mut item, "defaultRequest", &min);
    item
}

/// What the API server would say against a pod that is defaulted, of this class.
pub fn complaints(pod: &Value, bounds: &Bounds, class: &str) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for container in containers(pod) {
        let (requests, limits) =
            (amounts(&container["resources"]["requests"]), amounts(&container["resources"]["limits"]));
        check_order(&mut complaints, &requests, &limits);
        for_items(bounds, "Container", |item| check_item(&mut complaints, item, &requests, &limits));
    }
    check_whole(&mut complaints, pod);
    let (requests, limits) = effective(pod);
    for_items(bounds, "Pod", |item| check_item(&mut complaints, item, &requests, &limits));
    for one in bounds.quotas.iter().filter(|one| quota::counts(one, pod, class)) {
        quota::check(&mut complaints, one, pod);
    }
    complaints
}

/// A pod as it is stored, if it is accepted as it is sent.
///
/// # Errors
/// What the API server would say against it.
pub fn admitted(pod: &Value, bounds: &Bounds) -> Result<Value, Vec<Complaint>> {
    let pod = defaulted(pod, bounds);
    let complaints = complaints(&pod, bounds, class(&pod));
    if complaints.is_empty() { Ok(pod) } else { Err(complaints) }
}

fn for_items(bounds: &Bounds, kind: &str, work: impl FnMut(&Value)) {
    let all = bounds.ranges.iter().flat_map(|range| list(&range["spec"], "limits"));
    all.filter(|item| item["type"] == kind).for_each(work);
}

/// What the API server checks of a container whatever its namespace.
fn check_order(complaints: &mut Vec<Complaint>, requests: &Amounts, limits: &Amounts) {
    let is_whole = |name: &str| name.contains('/') || name.starts_with("hugepages-");
    for (name, request) in requests {
        match limits.get(name) {
            Some(limit) if request > limit || is_whole(name) && request != limit => {
                complaints.push((name.clone(), format!("request {request} to limit {limit}")));
            }
            None if is_whole(name) => complaints.push((name.clone(), "no limit".to_owned())),
            _ => {}
        }
    }
    let named = |name: &str| requests.contains_key(name) || limits.contains_key(name);
    if let Some((huge, _)) = limits.iter().find(|(name, _)| name.starts_with("hugepages-"))
        && !named("cpu")
        && !named("memory")
    {
        complaints.push((huge.clone(), "huge pages without cpu or memory".to_owned()));
    }
}

/// Containers within what is set for the pod as a whole.
fn check_whole(complaints: &mut Vec<Complaint>, pod: &Value) {
    let whole = &pod["spec"]["resources"];
    let (sums, _) = together(pod);
    for (name, most) in amounts(&whole["requests"]) {
        if sums.get(&name).is_some_and(|sum| *sum > most) {
            complaints.push((name, "more than the pod as a whole".to_owned()));
        }
    }
    check_order(complaints, &amounts(&whole["requests"]), &amounts(&whole["limits"]));
    for (name, most) in amounts(&whole["limits"]) {
        let above = |container: &Value| amounts(&container["resources"]["limits"]).get(&name) > Some(&most);
        if list(&pod["spec"], "containers").any(above) {
            complaints.push((name, "a limit above that of the pod".to_owned()));
        }
    }
}

fn check_item(complaints: &mut Vec<Complaint>, item: &Value, requests: &Amounts, limits: &Amounts) {
    let mut say = |name: &str, what: &str| complaints.push((name.to_owned(), format!("{what} by {item}")));
    for (name, min) in amounts(&item["min"]) {
        let (request, limit) = (requests.get(&name), limits.get(&name));
        if request.is_none_or(|request| *request < min) || limit.is_some_and(|limit| *limit < min) {
            say(&name, "min");
        }
    }
    for (name, max) in amounts(&item["max"]) {
        let (request, limit) = (requests.get(&name), limits.get(&name));
        if limit.is_none_or(|limit| *limit > max) || request.is_some_and(|request| *request > max) {
            say(&name, "max");
        }
    }
    for (name, ratio) in amounts(&item["maxLimitRequestRatio"]) {
        let set = |amounts: &Amounts| amounts.get(&name).copied().filter(|amount| *amount > 0);
        let (Some(request), Some(limit)) = (set(requests), set(limits)) else {
            say(&name, "ratio of nothing");
            continue;
        };
        // As Kubernetes reckons, in fractions that are not exact.
        let float = |amount: i128| amount.to_string().parse::<f64>().expect("a number");
        if float(limit) / float(request) * 1000.0 > float(ratio) {
            say(&name, "ratio");
        }
    }
}
