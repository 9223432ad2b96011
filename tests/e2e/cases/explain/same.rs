//! Whether `explain` says of a pod what came of it.

use otel_webhook_testkit::objects::items;
use serde_json::{Value, json};

/// The result for a language, or for an agent of an Instrumentation: outcome, Instrumentation, and containers.
type Outcome = (String, String, String, Vec<String>);

/// The pod that a Deployment makes of a template.
pub fn pod_of(template: &Value, name: &str) -> Value {
    let mut pod = template.clone();
    (pod["apiVersion"], pod["kind"]) = ("v1".into(), "Pod".into());
    let metadata = &mut pod["metadata"];
    metadata["generateName"] = format!("{name}-5d4f8-").into();
    metadata["labels"]["pod-template-hash"] = "5d4f8".into();
    metadata["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
        "name": format!("{name}-5d4f8"), "uid": "00000000-0000-4000-8000-000000000001"}]);
    pod
}

/// Compares what `explain` says with the stamp and the containers of the pod that the API server made of `sent`.
pub fn same(explained: &Value, sent: &Value, made: &Value) -> Result<(), String> {
    let stamp = made["metadata"]["annotations"]["otel-webhook/status"].as_str().unwrap_or("[]");
    let entries: Value = serde_json::from_str(stamp).map_err(|error| error.to_string())?;
    let stamped: Vec<Outcome> = items(&entries).map(of_entry).collect();
    // A pod that only opts out, or that has everything already, gets no stamp.
    let has_stamp = |finding: &&Value| {
        let silent = ["SwitchedOff", "NothingToAdd", "AlreadyInjected"];
        !stamped.is_empty() || !silent.contains(&finding["outcome"].as_str().unwrap_or_default())
    };
    let mut said: Vec<Outcome> = Vec::new();
    for finding in items(&explained["findings"]).filter(has_stamp) {
        let (language, outcome, instrumentation, containers) = of_finding(finding);
        match said.iter_mut().find(|one| one.0 == language && one.1 == outcome) {
            Some(one) => one.3.extend(containers),
            None => said.push((language, outcome, instrumentation, containers)),
        }
    }
    // A long stamp has the number of the containers in place of their names.
    for (one, entry) in said.iter_mut().zip(items(&entries)) {
        let named = items(&entry["containers"]).count();
        let more = entry["moreContainers"].as_u64().unwrap_or_default();
        if one.3.len() as u64 == named as u64 + more {
            one.3.truncate(named);
        }
    }
    equal(&said, &stamped)?;
    let images = |pod: &Value| {
        let of = |list: &str| items(&pod["spec"][list]).map(image).collect::<Vec<_>>();
        [of("initContainers"), of("containers")].concat()
    };
    let before = images(sent);
    let added: Vec<_> = images(made).into_iter().filter(|one| !before.contains(one)).collect();
    let mut said: Vec<_> =
        items(&explained["added"]).map(|one| (text(&one["container"]), text(&one["image"]))).collect();
    said.sort();
    let mut added = added;
    added.sort();
    equal(&said, &added)
}

fn equal<T: PartialEq + std::fmt::Debug>(said: &T, found: &T) -> Result<(), String> {
    if said == found {
        Ok(())
    } else {
        Err(format!("explain says\n  {said:?}\nbut the pod has\n  {found:?}"))
    }
}

fn of_entry(entry: &Value) -> Outcome {
    let containers = items(&entry["containers"]).map(text).collect();
    (agent(entry), text(&entry["outcome"]), text(&entry["instrumentation"]), containers)
}

fn of_finding(finding: &Value) -> Outcome {
    let container = finding["container"].as_str().map(str::to_owned).into_iter().collect();
    (agent(finding), text(&finding["outcome"]), text(&finding["instrumentation"]), container)
}

/// The language, with the agent if it stands for several.
fn agent(of: &Value) -> String {
    [text(&of["language"]), text(&of["agent"])].join(" ")
}

fn image(container: &Value) -> (String, String) {
    (text(&container["name"]), text(&container["image"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
