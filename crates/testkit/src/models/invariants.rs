//! What injection must not change, whatever annotations a pod has.

use otel_webhook_inject::language::LANGUAGES;
use serde_json::Value;

/// The lists of containers of a pod.
const LISTS: [&str; 2] = ["initContainers", "containers"];

/// Checks that what injection has no business with is as it was, where this Instrumentation was used.
///
/// # Errors
/// A sentence that names what changed.
pub fn unrelated(before: &Value, after: &Value, instrumentation: &Value) -> Result<(), String> {
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
            same_container(own, now, instrumentation)
                .map_err(|problem| format!("{}: {problem}", text(&own["name"])))?;
        }
    }
    Ok(())
}

/// Whether injection extends or renames a variable, and so may change it.
fn is_extended(variable: &str, instrumentation: &Value) -> bool {
    let of_agents = items(&instrumentation["spec"]["agents"]).flat_map(|agent| items(&agent["env"]));
    variable == "OTEL_RESOURCE_ATTRIBUTES"
        || LANGUAGES.iter().any(|language| language.extended.contains(&variable))
        || of_agents.filter(|of| !of["separator"].is_null()).any(|of| of["name"] == variable)
}

fn same_container(before: &Value, after: &Value, instrumentation: &Value) -> Result<(), String> {
    same_but_for(before, after, &["env", "volumeMounts"], "it")?;
    let stable = |variable: &&Value| !is_extended(text(&variable["name"]), instrumentation);
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
    if rest(before) == rest(after) {
        Ok(())
    } else {
        Err(format!("{what} changed in addition to {edited:?}"))
    }
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

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
