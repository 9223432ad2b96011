//! A model of the kubelet's check of `runAsNonRoot`: which added containers it would not start.

use serde_json::{Value, json};

use crate::objects::items;

/// The user of an image of an agent is root.
const NON_ROOT: i64 = 65532;

/// What is wrong with the users of containers that were not there before.
pub fn faults(before: &Value, after: &Value) -> Vec<String> {
    let added = |list: &'static str| {
        let is_own = move |one: &Value| items(&before["spec"][list]).any(|own| own["name"] == one["name"]);
        items(&after["spec"][list]).filter(move |one| !is_own(one))
    };
    let all = added("initContainers").chain(added("containers"));
    let rejected =
        all.filter(|one| is_restricted(after, one) && user(after, one).is_none_or(|user| user == 0));
    rejected.map(|one| format!("{} would run as root", one["name"])).collect()
}

/// The pod in which added containers have the user that they need (D41). A namespace has none.
pub fn started(before: &Value, after: &Value) -> Value {
    let mut started = after.clone();
    let list = started.pointer_mut("/spec/initContainers").and_then(Value::as_array_mut);
    for container in list.into_iter().flatten() {
        let is_own = items(&before["spec"]["initContainers"]).any(|own| own["name"] == container["name"]);
        if !is_own && is_restricted(after, container) && user(after, container).is_none() {
            container["securityContext"]["runAsUser"] = json!(NON_ROOT);
        }
    }
    started
}

/// Whether an added container needs a user that could not write to its claim, which no group may.
pub fn cannot_write(before: &Value, after: &Value) -> bool {
    let is_own = |one: &Value| items(&before["spec"]["initContainers"]).any(|own| own["name"] == one["name"]);
    let is_claim = |mount: &Value| {
        items(&after["spec"]["volumes"])
            .any(|volume| volume["name"] == mount["name"] && volume["ephemeral"].is_object())
    };
    let has_group = after["spec"]["securityContext"]["fsGroup"].is_number();
    let mut added = items(&after["spec"]["initContainers"]).filter(|one| !is_own(one));
    !has_group
        && added.any(|one| {
            is_restricted(after, one)
                && user(after, one).is_none()
                && items(&one["volumeMounts"]).any(is_claim)
        })
}

fn is_restricted(pod: &Value, container: &Value) -> bool {
    effective(pod, container, "runAsNonRoot").is_some_and(|value| value == true)
}

fn user(pod: &Value, container: &Value) -> Option<i64> {
    effective(pod, container, "runAsUser").and_then(Value::as_i64)
}

/// A field of a container's security context, else of its pod's.
fn effective<'v>(pod: &'v Value, container: &'v Value, field: &str) -> Option<&'v Value> {
    let contexts = [&container["securityContext"], &pod["spec"]["securityContext"]];
    contexts.into_iter().filter_map(|context| context.get(field)).find(|value| !value.is_null())
}
