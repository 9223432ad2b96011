//! What a kubelet does and podman leaves undone: in variables `$(NAME)` stands
//! for one set earlier, and fields tell of the pod and its node; each pod has volumes
//! of its own, some with the content of `ConfigMap`s, Secrets and annotations; and init containers run once.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

/// Fields of a node that is not there.
const OF_THE_NODE: [(&str, &str); 3] =
    [("status.hostIP", "127.0.0.1"), ("status.podIP", "127.0.0.1"), ("spec.nodeName", "node-1")];

/// The kind and the name of an object.
type Key = (String, String);

/// The content of an object by its keys.
type Content = HashMap<String, Vec<u8>>;

/// What `ConfigMap`s and Secrets contain.
type Data = HashMap<Key, Content>;

/// The name that podman has for the pod of a document, if it is a pod or has one.
pub fn pod_name(document: &Value) -> Option<String> {
    let name = text(&document["metadata"]["name"]);
    match text(&document["kind"]) {
        // Pods of several namespaces run at once.
        "Pod" => Some(format!("{}-{name}", text(&document["metadata"]["namespace"]))),
        // The name that podman gives to the one pod of a Deployment.
        "Deployment" => Some(format!("{name}-pod-0")),
        _ => None,
    }
}

/// The specification of a pod, or of the pods of a Deployment.
pub fn pod_spec(document: &mut Value) -> Option<&mut Value> {
    match document["kind"].as_str()? {
        "Pod" => document.get_mut("spec"),
        "Deployment" => document["spec"]["template"].get_mut("spec"),
        _ => None,
    }
}

/// Makes pods, and those of Deployments, ready for podman. The content of `ConfigMap`s and Secrets
/// is written to `folder`. References that podman follows itself stay.
pub fn prepare(documents: &mut [Value], folder: &Path) {
    let data: Data = documents.iter().filter_map(data_of).collect();
    for document in documents {
        let Some(name) = pod_name(document) else { continue };
        let metadata = document["metadata"].clone();
        let own_name = if document["kind"] == "Pod" { text(&metadata["name"]) } else { &name }.to_owned();
        if document["kind"] == "Pod" {
            // Of the rest nothing is for containers, and podman refuses long annotations.
            document["metadata"] = json!({"name": name});
        }
        let pod = if document["kind"] == "Pod" { document } else { &mut document["spec"]["template"] };
        let mut fields: HashMap<_, _> =
            OF_THE_NODE.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
        fields.insert("metadata.name".to_owned(), own_name);
        fields.insert("metadata.uid".to_owned(), text(&metadata["uid"]).to_owned());
        let spec = &mut pod["spec"];
        // With "Always", which a Deployment's pods have, podman starts init
        // containers anew as well, over and over.
        spec["restartPolicy"] = "Never".into();
        for volume in spec["volumes"].as_array_mut().into_iter().flatten() {
            fill(volume, &data, folder);
            fill_by_annotations(volume, &metadata, folder);
        }
        separate(&mut spec["volumes"], &name);
        for list in ["initContainers", "containers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                separate(&mut container["volumeMounts"], &name);
                resolve(container["env"].as_array_mut(), &fields, &data);
            }
        }
    }
}

fn data_of(document: &Value) -> Option<(Key, Content)> {
    let kind = text(&document["kind"]);
    let decode = |value: &str| match kind {
        "Secret" => BASE64_STANDARD.decode(value).expect("base64 in a Secret"),
        _ => value.as_bytes().to_vec(),
    };
    let entries = document["data"].as_object().into_iter().flatten();
    let data = entries.map(|(key, value)| (key.clone(), decode(text(value)))).collect();
    let name = text(&document["metadata"]["name"]).to_owned();
    matches!(kind, "ConfigMap" | "Secret").then(|| ((kind.to_owned(), name), data))
}

/// Makes a folder of a volume with the content of a `ConfigMap` or Secret: an empty one where there
/// is no such object and the volume allows it.
fn fill(volume: &mut Value, data: &Data, folder: &Path) {
    let (config_map, secret) = (&volume["configMap"], &volume["secret"]);
    let (kind, name, source) = match (config_map["name"].as_str(), secret["secretName"].as_str()) {
        (Some(name), _) => ("ConfigMap", name, config_map),
        (_, Some(name)) => ("Secret", name, secret),
        _ => return,
    };
    let found = data.get(&(kind.to_owned(), name.to_owned()));
    assert!(found.is_some() || source["optional"] == true, "the {kind} {name} does not exist");
    let path = folder.join(format!("{kind}-{name}"));
    fs::create_dir_all(&path).expect("a folder");
    for (key, content) in found.into_iter().flatten() {
        fs::write(path.join(key), content).expect("a file");
    }
    *volume = json!({"name": volume["name"], "hostPath": {"path": path, "type": "Directory"}});
}

/// Makes a folder of a volume of the downward API with annotations of the pod.
fn fill_by_annotations(volume: &mut Value, metadata: &Value, folder: &Path) {
    let Some(items) = volume["downwardAPI"]["items"].as_array() else { return };
    let path = folder.join(text(&volume["name"]));
    fs::create_dir_all(&path).expect("a folder");
    for item in items {
        let field = text(&item["fieldRef"]["fieldPath"]);
        let key = field.strip_prefix("metadata.annotations['").and_then(|rest| rest.strip_suffix("']"));
        let content = text(&metadata["annotations"][key.expect("an annotation")]);
        fs::write(path.join(text(&item["path"])), content).expect("a file");
    }
    *volume = json!({"name": volume["name"], "hostPath": {"path": path, "type": "Directory"}});
}

/// Names volumes after their pod: podman makes one volume of all emptyDirs of a
/// name, and what another pod left there would pass for this one's.
fn separate(volumes: &mut Value, pod: &str) {
    for volume in volumes.as_array_mut().into_iter().flatten() {
        volume["name"] = format!("{}-{pod}", text(&volume["name"])).into();
    }
}

fn resolve(env: Option<&mut Vec<Value>>, fields: &HashMap<String, String>, data: &Data) {
    let mut earlier: HashMap<String, String> = HashMap::new();
    for variable in env.into_iter().flatten() {
        let name = text(&variable["name"]).to_owned();
        let from = &variable["valueFrom"];
        let field = from["fieldRef"]["fieldPath"].as_str().and_then(|field| fields.get(field));
        let map = &from["configMapKeyRef"];
        let data = data.get(&("ConfigMap".to_owned(), text(&map["name"]).to_owned()));
        let value = if let Some(field) = field {
            field.clone()
        } else if let Some(data) = data {
            let content = data.get(text(&map["key"])).cloned().unwrap_or_default();
            String::from_utf8(content).expect("text in a ConfigMap")
        } else {
            expand(text(&variable["value"]), &earlier)
        };
        if field.is_some() || variable.get("value").is_some() {
            *variable = json!({"name": name, "value": value});
        }
        earlier.insert(name, value);
    }
}

/// As a kubelet expands: `$$` is one `$`, and what is not known stays.
fn expand(value: &str, earlier: &HashMap<String, String>) -> String {
    let (mut expanded, mut rest) = (String::new(), value);
    while let Some((before, after)) = rest.split_once('$') {
        expanded += before;
        let known = after
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'))
            .and_then(|(name, behind)| Some((earlier.get(name)?, behind)));
        if let Some((value, behind)) = known {
            expanded += value;
            rest = behind;
        } else {
            expanded.push('$');
            rest = after.strip_prefix('$').unwrap_or(after);
        }
    }
    expanded + rest
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn variables_are_expanded_as_by_a_kubelet() {
    let earlier = HashMap::from([("A".to_owned(), "a$(B)".to_owned())]);
    for (value, expanded) in [
        ("$(A)-$(A)", "a$(B)-a$(B)"),
        ("$(UNKNOWN) $$(A) $A $", "$(UNKNOWN) $(A) $A $"),
        ("$(A", "$(A"),
        ("", ""),
    ] {
        assert_eq!(expand(value, &earlier), expanded);
    }
}
