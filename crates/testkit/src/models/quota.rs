//! A model of ResourceQuotas: which pods they count, and which they reject.

use serde_json::Value;

use super::amounts::{Complaint, amounts, containers, effective, list};

/// Whether a quota counts a pod.
pub fn counts(quota: &Value, pod: &Value, class: &str) -> bool {
    let spec = &pod["spec"];
    let is_terminating = spec["activeDeadlineSeconds"].is_number();
    let priority = spec["priorityClassName"].as_str();
    let matches = |scope: &str, operator: &str, values: &[&str]| match scope {
        "Terminating" => is_terminating,
        "NotTerminating" => !is_terminating,
        "BestEffort" => class == "BestEffort",
        "NotBestEffort" => class != "BestEffort",
        "PriorityClass" => match operator {
            "In" => priority.is_some_and(|priority| values.contains(&priority)),
            "NotIn" => priority.is_none_or(|priority| !values.contains(&priority)),
            "Exists" => priority.is_some(),
            _ => priority.is_none(),
        },
        other => panic!("the generator makes no scope {other}"),
    };
    let scopes = list(&quota["spec"], "scopes").filter_map(Value::as_str);
    let expressions = list(&quota["spec"]["scopeSelector"], "matchExpressions");
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    scopes.map(str::to_owned).all(|scope| matches(&scope, "Exists", &[]))
        && expressions.into_iter().all(|one| {
            let values: Vec<&str> = list(one, "values").filter_map(Value::as_str).collect();
            matches(&text(&one["scopeName"]), &text(&one["operator"]), &values)
        })
}

/// What a quota that counts a pod says against it.
pub fn check(complaints: &mut Vec<Complaint>, quota: &Value, pod: &Value) {
    let (hard, used) = (amounts(&quota["spec"]["hard"]), amounts(&quota["status"]["used"]));
    let has_whole =
        ["requests", "limits"].iter().any(|list| !amounts(&pod["spec"]["resources"][list]).is_empty());
    let (requests, limits) = effective(pod);
    let overhead = amounts(&pod["spec"]["overhead"]);
    for (key, most) in hard {
        let (kind, name) = match key.split_once('.') {
            _ if key == "pods" => ("pods", String::new()),
            Some(("requests", name)) => ("requests", name.to_owned()),
            Some(("limits", name)) => ("limits", name.to_owned()),
            _ => ("requests", key.clone()),
        };
        let is_set = |container: &Value| container["resources"][kind].get(&name).is_some();
        if ["cpu", "memory"].contains(&&*name) && !has_whole && !containers(pod).all(is_set) {
            complaints.push((name.clone(), format!("a container without {key}")));
        }
        let effective = if kind == "limits" { &limits } else { &requests };
        let own = effective.get(&name).copied().unwrap_or_default();
        let more = overhead.get(&name).copied().filter(|_| kind == "requests" || own > 0).unwrap_or_default();
        let needed = if kind == "pods" { 1_000 } else { own + more };
        let left = most - used.get(&key).copied().unwrap_or_default();
        if needed > 0 && needed > left {
            complaints.push((name, format!("{key}: {needed} of {left}")));
        }
    }
}
