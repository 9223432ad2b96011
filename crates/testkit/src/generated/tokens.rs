//! Generated pods with tokens of ServiceAccounts, in the ways in which users mount them.

use serde_json::{Value, json};

use super::{
    choices::Choices,
    pods::{Generated, generate},
};
use crate::models::service_account::TOKEN_PATH;

/// The pod and the Instrumentation of a number. Most pods leave the token to the API server; some of their
/// containers mount their own volume there, or all do, and some pods bring the volume as well, as copies
/// of other pods do.
pub fn with_tokens(seed: u64) -> Generated {
    let mut generated = generate(seed);
    // Another sequence than that of the pod itself.
    let mut choices = Choices::new(seed ^ 0x5eed_0f70);
    let spec = &mut generated.pod["spec"];
    match choices.below(10) {
        0 => spec["automountServiceAccountToken"] = json!(false),
        1 => spec["automountServiceAccountToken"] = json!(true),
        _ => {}
    }
    let share = choices.one(&[&0, &0, &0, &0, &30, &100]);
    for volume in choices.some(&["own-token", "kube-api-access-b", "kube-api-access-a"], 15) {
        let volumes = spec["volumes"].as_array_mut().expect("volumes");
        volumes.insert(0, json!({"name": volume, "emptyDir": {}}));
        mount(spec, volume, *share, &mut choices);
    }
    generated
}

/// Mounts a volume where the token would be, in this share of the containers.
fn mount(spec: &mut Value, volume: &str, percent: usize, choices: &mut Choices) {
    for list in ["containers", "initContainers"] {
        let all = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in all {
            let mounts = container.as_object_mut().expect("a container").entry("volumeMounts");
            let mounts = mounts.or_insert_with(|| json!([])).as_array_mut().expect("mounts");
            let is_taken = mounts.iter().any(|mount| mount["mountPath"] == TOKEN_PATH);
            if !is_taken && choices.chance(percent) {
                mounts.push(json!({"name": volume, "mountPath": TOKEN_PATH}));
            }
        }
    }
}
