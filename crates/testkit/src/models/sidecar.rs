//! A model of the sidecar's resources: whether any resources would be accepted. It tries all values
//! that could make a difference.
//!
//! The documented rule: limits that the Instrumentation sets stay, are only raised to a minimum, and
//! are never less than what it requests; requests may be anything. The sidecar of a `BestEffort` pod
//! may have no requests and limits.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    amounts::{Amounts, amounts, class, quantity, together},
    namespace::{Bounds, complaints, defaulted},
};

type Pair = (Option<i128>, Option<i128>);

/// Resources of a sidecar with which a pod that is accepted without it stays accepted, if there are any.
pub fn acceptable(pod: &Value, bounds: &Bounds, said: &Value) -> Option<Value> {
    let mut names: BTreeSet<String> = amounts(&said["requests"]).into_keys().collect();
    names.extend(amounts(&said["limits"]).into_keys());
    names.extend(["cpu", "memory"].map(str::to_owned));
    let items =
        bounds.ranges.iter().flat_map(|range| range["spec"]["limits"].as_array().into_iter().flatten());
    for item in items.filter(|item| item["type"] == "Container") {
        for list in ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"] {
            names.extend(amounts(&item[list]).into_keys());
        }
    }
    let is_best_effort = class(pod) == "BestEffort";
    let with_class = |class: &str, none_of: &[&str]| {
        let mut found = json!({"requests": {}, "limits": {}});
        for name in &names {
            let pairs = if none_of.contains(&&**name) {
                vec![(None, None), (Some(0), None), (Some(0), Some(0))]
            } else {
                candidates(pod, bounds, said, name)
            };
            let fits = |pair: &Pair| {
                let pod = with_sidecar(pod, bounds, &set(said, name, *pair));
                complaints(&pod, bounds, class).iter().all(|(of, _)| of != name && !of.is_empty())
            };
            found = set(&found, name, pairs.into_iter().find(fits)?);
        }
        let pod = with_sidecar(pod, bounds, &found);
        complaints(&pod, bounds, self::class(&pod)).is_empty().then_some(found)
    };
    let burstable = if is_best_effort { "Burstable" } else { class(pod) };
    with_class(burstable, &[])
        .or_else(|| is_best_effort.then(|| with_class("BestEffort", &["cpu", "memory"])).flatten())
}

fn set(resources: &Value, name: &str, (request, limit): Pair) -> Value {
    let mut resources = resources.clone();
    for (list, amount) in [("requests", request), ("limits", limit)] {
        if !resources[list].is_object() {
            resources[list] = json!({});
        }
        let members = resources[list].as_object_mut().expect("an object");
        match amount {
            Some(amount) => members.insert(name.to_owned(), format!("{amount}m").into()),
            None => members.remove(name),
        };
    }
    resources
}

fn with_sidecar(pod: &Value, bounds: &Bounds, resources: &Value) -> Value {
    let mut pod = pod.clone();
    let mut sidecar = json!({"name": "opentelemetry-auto-instrumentation", "resources": resources});
    let spec = pod["spec"].as_object_mut().expect("a specification");
    let ends = spec.get("restartPolicy").is_some_and(|policy| policy != "Always");
    if ends {
        sidecar["restartPolicy"] = "Always".into();
    }
    let list = spec.entry(if ends { "initContainers" } else { "containers" }).or_insert_with(|| json!([]));
    list.as_array_mut().expect("a list").push(sidecar);
    defaulted(&pod, bounds)
}

/// Every pair that could make a difference for a resource.
fn candidates(pod: &Value, bounds: &Bounds, said: &Value, name: &str) -> Vec<Pair> {
    let of = |list: &str| said[list].get(name).map(quantity);
    let (limit, request) = (of("limits"), of("requests").or(of("limits")));
    let mut figures: BTreeSet<i128> = [0, 1, 1000].into_iter().chain(limit).chain(request).collect();
    let (mut ratios, mut least) = (Vec::new(), 0);
    for range in &bounds.ranges {
        for item in range["spec"]["limits"].as_array().into_iter().flatten() {
            for list in ["min", "max", "default", "defaultRequest"] {
                figures.extend(item[list].get(name).map(quantity));
            }
            least = item["min"].get(name).map(quantity).unwrap_or_default().max(least);
            ratios.extend(item["maxLimitRequestRatio"].get(name).map(quantity));
        }
    }
    for quota in &bounds.quotas {
        for key in [name.to_owned(), format!("requests.{name}"), format!("limits.{name}")] {
            let left = |hard: &Value| quantity(hard) - quota["status"]["used"].get(&key).map_or(0, quantity);
            figures.extend(quota["spec"]["hard"].get(&key).map(left));
        }
    }
    for list in ["requests", "limits"] {
        figures.extend(pod["spec"]["resources"][list].get(name).map(quantity));
    }
    // What is left beside the pod's own containers, and what keeps to a ratio.
    let overhead = pod["spec"]["overhead"].get(name).map_or(0, quantity);
    let (requests, limits) = running(pod);
    let own: Vec<i128> = [requests.get(name), limits.get(name)].into_iter().flatten().copied().collect();
    let beside: Vec<i128> = figures
        .iter()
        .flat_map(|figure| own.iter().flat_map(move |own| [figure - own, figure - own - overhead]))
        .collect();
    figures.extend(beside);
    let by_ratio: Vec<i128> = figures
        .iter()
        .flat_map(|figure| {
            ratios.iter().flat_map(move |ratio| [figure * ratio / 1000, figure * 1000 / ratio + 1])
        })
        .collect();
    figures.extend(by_ratio);
    let unit = if name.starts_with("hugepages-") { 2 << 20 } else { 1 } * 1000;
    let is_whole = name.contains('/') || name.starts_with("hugepages-");
    figures.retain(|figure| *figure >= 0 && (!is_whole || figure % unit == 0));
    let floor = limit.map(|limit| request.unwrap_or(limit).min(limit));
    let ceiling = limit.map_or(i128::MAX, |limit| limit.max(least));
    let is_limit = |figure: &&i128| floor.is_none_or(|floor| **figure >= floor) && **figure <= ceiling;
    let none = limit.is_none().then_some(None);
    let limits: Vec<Option<i128>> =
        none.into_iter().chain(figures.iter().filter(is_limit).map(|one| Some(*one))).collect();
    let requests: Vec<Option<i128>> =
        [None].into_iter().chain(figures.iter().map(|one| Some(*one))).collect();
    let pairs = limits.iter().flat_map(|limit| requests.iter().map(move |request| (*request, *limit)));
    pairs
        .filter(|(request, limit)| limit.is_none_or(|limit| request.is_none_or(|request| request <= limit)))
        .collect()
}

/// What runs together, without the steps of init containers that end.
fn running(pod: &Value) -> (Amounts, Amounts) {
    let mut pod = pod.clone();
    if let Some(init) = pod["spec"].get_mut("initContainers").and_then(Value::as_array_mut) {
        init.retain(|one| one["restartPolicy"] == "Always");
    }
    together(&pod)
}
