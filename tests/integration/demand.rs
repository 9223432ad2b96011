//! What a pod asks for and its class of service, reckoned a second time from
//! the documentation of Kubernetes, to hold the product's own reckoning against (D23).

use serde_json::Value;

use crate::support::items;

const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// Checks that a pod asks for what it asked for before.
pub fn unchanged(before: &Value, after: &Value) -> Result<(), String> {
    for resource in RESOURCES {
        let (old, new) = (effective(before, resource), effective(after, resource));
        if old != new {
            return Err(format!("the pod asked for {old} of {resource} and now asks for {new}"));
        }
    }
    Ok(())
}

/// Checks that a pod is of the class that it was of.
pub fn in_the_same_class(before: &Value, after: &Value) -> Result<(), String> {
    let (old, new) = (class(before), class(after));
    if old == new { Ok(()) } else { Err(format!("the pod was {old} and now is {new}")) }
}

/// In thousandths, which all generated quantities are.
fn quantity(value: &Value) -> Option<u64> {
    let text = value.as_str()?;
    let (number, scale) = [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)]
        .into_iter()
        .find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, scale * 1000)))
        .or_else(|| Some((text.strip_suffix('m')?, 1)))
        .unwrap_or((text, 1000));
    Some(number.parse::<u64>().expect("a quantity of the generator") * scale)
}

/// What a container asks for; the API server takes the limit where no request is said.
fn request(of: &Value, resource: &str) -> Option<u64> {
    quantity(&of["resources"]["requests"][resource]).or_else(|| limit(of, resource))
}

fn limit(of: &Value, resource: &str) -> Option<u64> {
    quantity(&of["resources"]["limits"][resource])
}

fn effective(pod: &Value, resource: &str) -> u64 {
    let spec = &pod["spec"];
    if let Some(whole) = request(spec, resource) {
        return whole;
    }
    let ask = |one: &Value| request(one, resource).unwrap_or_default();
    let (mut started, mut peak) = (0, 0);
    for init in items(&spec["initContainers"]) {
        peak = peak.max(started + ask(init));
        if init["restartPolicy"] == "Always" {
            started += ask(init);
        }
    }
    let running: u64 = items(&spec["containers"]).map(ask).sum();
    peak.max(started + running)
}

fn class(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    let whole = RESOURCES.iter().any(|resource| request(spec, resource).is_some());
    let each_container = || items(&spec["containers"]).chain(items(&spec["initContainers"]));
    let all: Vec<&Value> = if whole { vec![spec] } else { each_container().collect() };
    let positive = |amount: Option<u64>| amount.filter(|amount| *amount > 0);
    let each = || {
        all.iter().flat_map(|one| {
            RESOURCES.map(|resource| (positive(request(one, resource)), positive(limit(one, resource))))
        })
    };
    if each().all(|(request, limit)| request.is_none() && limit.is_none()) {
        "BestEffort"
    } else if each().all(|(request, limit)| limit.is_some() && request == limit) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
