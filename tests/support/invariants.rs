//! What holds for every pod that was injected, whatever it asked for.

use std::collections::BTreeSet;

use serde_json::Value;

/// The lists of containers of a pod.
const LISTS: [&str; 2] = ["initContainers", "containers"];

/// Checks a pod against the one it was made of.
///
/// # Errors
/// A sentence that says what does not hold.
pub fn check(before: &Value, after: &Value) -> Result<(), String> {
    unique(items(&after["spec"]["volumes"]), "name", "volume")?;
    unique(LISTS.iter().flat_map(|list| items(&after["spec"][*list])), "name", "container")?;
    for list in LISTS {
        for container in items(&after["spec"][list]) {
            let own = items(&before["spec"][list]).find(|own| own["name"] == container["name"]);
            let name = text(&container["name"]);
            check_container(own, container).map_err(|problem| format!("container {name}: {problem}"))?;
        }
    }
    Ok(())
}

fn check_container(own: Option<&Value>, container: &Value) -> Result<(), String> {
    let none = Value::Null;
    let own = own.unwrap_or(&none);
    unique(items(&container["volumeMounts"]), "mountPath", "mount path")?;
    let before: Vec<&Value> = items(&own["env"]).collect();
    let after: Vec<&Value> = items(&container["env"]).collect();
    once(&before, &after)?;
    references(&before, &after)?;
    for variable in &after {
        if variable.get("value").is_some_and(|value| !text(value).is_empty())
            && variable.get("valueFrom").is_some()
        {
            return Err(format!("{} has a value and a source", text(&variable["name"])));
        }
    }
    Ok(())
}

/// A name stands twice only where the container had it twice.
fn once(before: &[&Value], after: &[&Value]) -> Result<(), String> {
    let count = |list: &[&Value], name: &str| list.iter().filter(|one| one["name"] == name).count();
    for variable in after {
        let name = text(&variable["name"]);
        if count(after, name) > count(before, name).max(1) {
            return Err(format!("{name} stands {} times", count(after, name)));
        }
    }
    Ok(())
}

/// What was added refers only to variables that stand before it; the kubelet resolves no others.
fn references(before: &[&Value], after: &[&Value]) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for variable in after {
        let added = before.iter().all(|own| own["value"] != variable["value"]);
        for reference in injected_references(text(&variable["value"])) {
            if added && !known.contains(reference) {
                return Err(format!(
                    "{} refers to {reference}, which does not stand before it",
                    text(&variable["name"])
                ));
            }
        }
        known.insert(text(&variable["name"]));
    }
    Ok(())
}

/// The references that injection makes up: to its own variables and to renamed originals.
fn injected_references(value: &str) -> impl Iterator<Item = &str> {
    let names = value.split("$(").skip(1).filter_map(|rest| rest.split_once(')').map(|(name, _)| name));
    names.filter(|name| {
        name.starts_with("OTEL_RESOURCE_ATTRIBUTES_") || name.starts_with("OTEL_INJECT_ORIGINAL_")
    })
}

fn unique<'v>(list: impl Iterator<Item = &'v Value>, key: &str, what: &str) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for item in list {
        if !seen.insert(text(&item[key])) {
            return Err(format!("the {what} {} stands twice", text(&item[key])));
        }
    }
    Ok(())
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Checks that what injection has no business with is as it was.
///
/// # Errors
/// A sentence that names what changed.
pub fn unrelated(before: &Value, after: &Value) -> Result<(), String> {
    same_but_for(before, after, &["metadata", "spec"], "the pod")?;
    same_but_for(&before["metadata"], &after["metadata"], &["annotations", "labels"], "metadata")?;
    for map in ["annotations", "labels"] {
        let kept = |(key, value): (&String, &Value)| after["metadata"][map].get(key) == Some(value);
        let changed = before["metadata"][map].as_object().into_iter().flatten().find(|entry| !kept(*entry));
        if let Some((key, _)) = changed.filter(|(key, _)| !key.starts_with("cluster-autoscaler.")) {
            return Err(format!("metadata.{map}.{key} changed"));
        }
    }
    let edited = ["containers", "initContainers", "volumes", "shareProcessNamespace"];
    same_but_for(&before["spec"], &after["spec"], &edited, "spec")?;
    subsequence(items(&before["spec"]["volumes"]), items(&after["spec"]["volumes"]), "spec.volumes")?;
    for list in LISTS {
        let find = |own: &Value| items(&after["spec"][list]).position(|one| one["name"] == own["name"]);
        let places: Vec<usize> = items(&before["spec"][list]).filter_map(find).collect();
        if places.len() != items(&before["spec"][list]).count() || !places.is_sorted() {
            return Err(format!("spec.{list} lost or moved a container"));
        }
        for own in items(&before["spec"][list]) {
            let now =
                items(&after["spec"][list]).find(|one| one["name"] == own["name"]).unwrap_or(&Value::Null);
            same_container(own, now).map_err(|problem| format!("{}: {problem}", text(&own["name"])))?;
        }
    }
    Ok(())
}

/// Variables that injection extends or renames, and so may change.
const EXTENDED: [&str; 8] = [
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "DOTNET_STARTUP_HOOKS",
    "DOTNET_ADDITIONAL_DEPS",
    "DOTNET_SHARED_STORE",
    "LD_LIBRARY_PATH",
    "OTEL_RESOURCE_ATTRIBUTES",
];

fn same_container(before: &Value, after: &Value) -> Result<(), String> {
    same_but_for(before, after, &["env", "volumeMounts"], "it")?;
    let stable = |variable: &&Value| !EXTENDED.contains(&text(&variable["name"]));
    subsequence(items(&before["env"]).filter(stable), items(&after["env"]), "env")?;
    // Apache HTTPD and nginx take the mount away that would hide their configuration.
    let lost = items(&before["volumeMounts"])
        .filter(|own| !items(&after["volumeMounts"]).any(|now| now == *own))
        .count();
    let replaced = items(&after["volumeMounts"]).any(|now| text(&now["name"]).ends_with("-conf-dir"));
    if lost > usize::from(replaced) {
        return Err("volumeMounts lost an entry".to_owned());
    }
    Ok(())
}

fn same_but_for(before: &Value, after: &Value, edited: &[&str], what: &str) -> Result<(), String> {
    let rest = |value: &Value| {
        let members = value.as_object().into_iter().flatten();
        let kept: Vec<_> = members
            .filter(|(key, _)| !edited.contains(&key.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        kept
    };
    if rest(before) == rest(after) { Ok(()) } else { Err(format!("{what} changed beside {edited:?}")) }
}

fn subsequence<'v>(
    own: impl Iterator<Item = &'v Value>,
    mut all: impl Iterator<Item = &'v Value>,
    what: &str,
) -> Result<(), String> {
    for item in own {
        if !all.any(|one| one == item) {
            return Err(format!("{what} lost or moved {item}"));
        }
    }
    Ok(())
}
