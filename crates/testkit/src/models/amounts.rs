//! Amounts of resources that a pod has: of each container, together, and its class of service.

use std::collections::BTreeMap;

use serde_json::Value;

/// Amounts in thousandths, which is as fine as the API server keeps them.
pub type Amounts = BTreeMap<String, i128>;

/// A quantity in thousandths, rounded up.
pub fn quantity(value: &Value) -> i128 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let scale: i128 = match suffix {
        "m" => 1,
        "" => 1_000,
        "Ki" => 1_000 << 10,
        "Mi" => 1_000 << 20,
        "Gi" => 1_000 << 30,
        other => panic!("the generator makes no {other:?}"),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().expect("a number");
    let parts = 10_i128.pow(u32::try_from(fraction.len()).expect("few digits"));
    (digits * scale + parts - 1) / parts
}

/// The amounts of a map.
fn amounts(map: &Value) -> Amounts {
    let entries = map.as_object().into_iter().flatten();
    entries.map(|(name, value)| (name.clone(), quantity(value))).collect()
}

/// Requests or limits. The API server sets requests that are not set to the limits.
fn asked(resources: &Value, kind: &str) -> Amounts {
    let mut asked = amounts(&resources[kind]);
    if kind == "requests" {
        for (name, limit) in amounts(&resources["limits"]) {
            asked.entry(name).or_insert(limit);
        }
    }
    asked
}

/// The items of a list.
fn list<'v>(object: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    object[name].as_array().into_iter().flatten()
}

/// Containers and init containers.
fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    list(&pod["spec"], "containers").chain(list(&pod["spec"], "initContainers"))
}

/// What the containers have together: requests and limits.
fn together(pod: &Value) -> (Amounts, Amounts) {
    let of = |kind: &str| {
        let (mut running, mut peak) = (Amounts::new(), Amounts::new());
        for init in list(&pod["spec"], "initContainers") {
            let own = asked(&init["resources"], kind);
            let mut step = running.clone();
            add(&mut step, &own);
            for (name, amount) in &step {
                let most = peak.entry(name.clone()).or_insert(*amount);
                *most = (*most).max(*amount);
            }
            if init["restartPolicy"] == "Always" {
                add(&mut running, &own);
            }
        }
        for own in list(&pod["spec"], "containers") {
            add(&mut running, &asked(&own["resources"], kind));
        }
        for (name, amount) in peak {
            let most = running.entry(name).or_insert(amount);
            *most = (*most).max(amount);
        }
        running
    };
    (of("requests"), of("limits"))
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *sum.entry(name.clone()).or_default() += amount;
    }
}

/// The effective requests and limits of a pod.
pub fn effective(pod: &Value) -> (Amounts, Amounts) {
    let (mut requests, mut limits) = together(pod);
    for (list, effective) in [("requests", &mut requests), ("limits", &mut limits)] {
        let whole = amounts(&pod["spec"]["resources"][list]);
        effective.extend(whole.into_iter().filter(|(name, _)| name == "cpu" || name == "memory"));
    }
    (requests, limits)
}

/// The class of service.
pub fn class(pod: &Value) -> &'static str {
    let whole = &pod["spec"]["resources"];
    let all: Vec<&Value> = if whole.is_object() {
        vec![whole]
    } else {
        containers(pod).map(|container| &container["resources"]).collect()
    };
    let positive = |one: &Value, list: &str, name: &str| {
        let amount = asked(one, list).get(name).copied();
        amount.filter(|amount| *amount > 0)
    };
    let pairs = || {
        all.iter().flat_map(move |one| {
            ["cpu", "memory"].map(|name| (positive(one, "requests", name), positive(one, "limits", name)))
        })
    };
    if pairs().all(|pair| pair == (None, None)) {
        "BestEffort"
    } else if pairs().all(|(request, limit)| limit.is_some() && request == limit) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
