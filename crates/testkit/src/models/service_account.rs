//! A model of the ServiceAccount admission plugin: which mounts and volumes it adds to a pod.

use serde_json::{Value, json};

use crate::objects::items;

/// Where the plugin mounts the token.
pub const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How the names of its volumes begin.
pub const TOKEN_VOLUME: &str = "kube-api-access-";

/// The pod after the plugin. `suffix` is the end of the volume's name, which the API server draws by chance.
pub fn mounted(pod: &Value, suffix: &str) -> Value {
    let mut pod = pod.clone();
    if pod["spec"]["automountServiceAccountToken"] == false {
        return pod;
    }
    let names = || items(&pod["spec"]["volumes"]).filter_map(|volume| volume["name"].as_str());
    let present = names().find(|name| name.starts_with(TOKEN_VOLUME)).map(str::to_owned);
    let is_new = present.is_none();
    let volume = present.unwrap_or_else(|| format!("{TOKEN_VOLUME}{suffix}"));
    let mut is_mounted = false;
    for list in ["initContainers", "containers"] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter(|one| !mounts_token(one)) {
            let mount = json!({"name": volume, "readOnly": true, "mountPath": TOKEN_PATH});
            push(&mut container["volumeMounts"], mount);
            is_mounted = true;
        }
    }
    if is_new && is_mounted {
        push(&mut pod["spec"]["volumes"], json!({"name": volume, "projected": source()}));
    }
    pod
}

/// Whether a container mounts anything where the plugin mounts the token.
pub fn mounts_token(container: &Value) -> bool {
    items(&container["volumeMounts"]).any(|mount| mount["mountPath"] == TOKEN_PATH)
}

/// An injected pod without the token in containers that the pod did not have before, except for those that
/// copy another one's mounts: as if only the plugin had added it.
pub fn without_added_tokens(before: &Value, after: &Value) -> Value {
    let mut pod = after.clone();
    for list in ["initContainers", "containers"] {
        let own: Vec<_> = items(&before["spec"][list]).map(|container| container["name"].clone()).collect();
        let all = pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        let is_copy = |container: &Value| container["name"] == "otel-agent-source-container-clone";
        for container in all.filter(|one| !own.contains(&one["name"]) && !is_copy(one)) {
            if let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) {
                mounts.retain(|mount| mount["mountPath"] != TOKEN_PATH);
            }
        }
    }
    pod
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        _ => *list = json!([item]),
    }
}

fn source() -> Value {
    let ca = json!([{"key": "ca.crt", "path": "ca.crt"}]);
    let namespace =
        json!([{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]);
    json!({"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": ca}},
        {"downwardAPI": {"items": namespace}},
    ]})
}
