//! What holds for every injected pod, whatever annotations it has.

use std::collections::HashMap;

use serde_json::Value;

use crate::objects::items;

/// The variables that the product itself refers to begin with one of these.
const REFERRED: [&str; 2] = ["OTEL_RESOURCE_ATTRIBUTES_", "OTEL_INJECT_ORIGINAL_"];

/// What is wrong with a pod that was not wrong before.
pub fn faults(before: &Value, after: &Value) -> Vec<String> {
    let (old, new) = (&before["spec"], &after["spec"]);
    let mut faults = Vec::new();
    faults.extend(repeated("volume", old, new, &["volumes"], "name"));
    faults.extend(repeated("container", old, new, &["containers", "initContainers"], "name"));
    for list in ["containers", "initContainers"] {
        for container in items(&new[list]) {
            let own = items(&old[list]).find(|own| own["name"] == container["name"]);
            // A clone has what its original has.
            let original = || items(&old["containers"]).find(|own| own["image"] == container["image"]);
            check_container(&mut faults, own.or_else(original).unwrap_or(&Value::Null), container);
        }
    }
    faults
}

fn check_container(faults: &mut Vec<String>, own: &Value, container: &Value) {
    let what = |what: &str| format!("{what} of {}", container["name"]);
    faults.extend(repeated(&what("variable"), own, container, &["env"], "name"));
    faults.extend(repeated(&what("mount path"), own, container, &["volumeMounts"], "mountPath"));
    let mut earlier: Vec<&str> = Vec::new();
    for variable in items(&container["env"]) {
        let missing = references(variable)
            .into_iter()
            .filter(|name| REFERRED.iter().any(|prefix| name.starts_with(prefix)) && !earlier.contains(name));
        let added = !items(&own["env"]).any(|own| own == variable);
        if added {
            let line =
                |name| format!("{}: {} refers to {name} too early", container["name"], variable["name"]);
            faults.extend(missing.map(line));
            if variable.get("value").is_some() && variable.get("valueFrom").is_some() {
                faults.push(format!("{}: {} is set twice over", container["name"], variable["name"]));
            }
        }
        earlier.extend(variable["name"].as_str());
    }
}

/// What stands in lists of a changed object more often than before, and more than once.
fn repeated(what: &str, before: &Value, after: &Value, lists: &[&str], field: &str) -> Vec<String> {
    let own = names(before, lists, field);
    let line = |(name, count): (&str, &usize)| format!("{what} {name:?} stands {count} times");
    let counts = names(after, lists, field);
    let more = counts.iter().filter(|(name, count)| **count > own.get(*name).copied().unwrap_or(1).max(1));
    more.map(|(name, count)| line((name, count))).collect()
}

/// How often each name stands in the lists.
fn names<'v>(object: &'v Value, lists: &[&str], field: &str) -> HashMap<&'v str, usize> {
    let mut counts = HashMap::new();
    for item in lists.iter().flat_map(|list| items(&object[*list])) {
        *counts.entry(item[field].as_str().unwrap_or_default()).or_default() += 1;
    }
    counts
}

fn references(variable: &Value) -> Vec<&str> {
    let parts = variable["value"].as_str().unwrap_or_default().split("$(").skip(1);
    parts.filter_map(|part| Some(part.split_once(')')?.0)).collect()
}
