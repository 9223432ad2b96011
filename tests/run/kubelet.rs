//! What a kubelet does and podman leaves undone: in variables `$(NAME)` stands
//! for one set earlier, and fields tell of the node; each pod has volumes of
//! its own; and init containers run once.

use std::collections::HashMap;

use serde_json::Value;

/// Fields that podman refuses, with values for a node that is not there.
const OF_THE_NODE: [(&str, &str); 3] =
    [("status.hostIP", "127.0.0.1"), ("status.podIP", "127.0.0.1"), ("spec.nodeName", "node-1")];

/// Makes the pods of Deployments ready for podman. References that podman
/// follows itself stay.
pub fn prepare(documents: &mut [Value]) {
    let maps: HashMap<String, Value> = documents
        .iter()
        .filter(|document| document["kind"] == "ConfigMap")
        .map(|map| (text(&map["metadata"]["name"]).to_owned(), map["data"].clone()))
        .collect();
    for deployment in documents.iter_mut().filter(|document| document["kind"] == "Deployment") {
        // The name that podman gives to the one pod of a Deployment.
        let pod = format!("{}-pod-0", text(&deployment["metadata"]["name"]));
        let spec = &mut deployment["spec"]["template"]["spec"];
        // With "Always", which a Deployment's pods have, podman starts init
        // containers anew as well, over and over.
        spec["restartPolicy"] = "Never".into();
        separate(&mut spec["volumes"], &pod);
        for list in ["initContainers", "containers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                separate(&mut container["volumeMounts"], &pod);
                resolve(container["env"].as_array_mut(), &pod, &maps);
            }
        }
    }
}

/// Names volumes after their pod: podman makes one volume of all emptyDirs of a
/// name, and what another pod left there would pass for this one's.
fn separate(volumes: &mut Value, pod: &str) {
    for volume in volumes.as_array_mut().into_iter().flatten() {
        volume["name"] = format!("{}-{pod}", text(&volume["name"])).into();
    }
}

fn resolve(env: Option<&mut Vec<Value>>, pod: &str, maps: &HashMap<String, Value>) {
    let mut earlier: HashMap<String, String> = HashMap::new();
    for variable in env.into_iter().flatten() {
        let name = text(&variable["name"]).to_owned();
        let (field, map) =
            (&variable["valueFrom"]["fieldRef"]["fieldPath"], &variable["valueFrom"]["configMapKeyRef"]);
        let of_the_node = OF_THE_NODE.iter().find(|(path, _)| field == path);
        let value = if let Some((_, value)) = of_the_node {
            (*value).to_owned()
        } else if field == "metadata.name" {
            pod.to_owned()
        } else if let Some(data) = map["name"].as_str().and_then(|name| maps.get(name)) {
            text(&data[text(&map["key"])]).to_owned()
        } else {
            expand(text(&variable["value"]), &earlier)
        };
        if of_the_node.is_some() || variable.get("value").is_some() {
            *variable = serde_json::json!({"name": name, "value": value});
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
