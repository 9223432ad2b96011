//! The Secrets and `ConfigMap`s that injection mounts into a pod for its exporters.

use serde_json::Value;

/// The beginnings of the names of the volumes that injection adds.
const VOLUMES: [&str; 2] = ["otel-auto-secret-", "otel-auto-configmap-"];

/// An object that a new pod mounts for its exporters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct File {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
}

/// Returns the objects that injection mounts into a pod, as it is after the injection.
pub fn files(injected: &Value) -> Vec<File> {
    let volumes = injected["spec"]["volumes"].as_array().into_iter().flatten();
    let added = volumes.filter(|volume| {
        let name = volume["name"].as_str().unwrap_or_default();
        VOLUMES.iter().any(|start| name.starts_with(start))
    });
    let file = |volume: &Value| {
        let secret = volume["secret"]["secretName"].as_str().map(|name| ("Secret", name));
        let found = secret.or_else(|| volume["configMap"]["name"].as_str().map(|name| ("ConfigMap", name)));
        found.map(|(kind, name)| File { kind, name: name.to_owned() })
    };
    added.filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_are_those_of_the_volumes_that_injection_adds() {
        let pod = json!({"spec": {"volumes": [
            {"name": "own", "secret": {"secretName": "own"}},
            {"name": "otel-auto-secret-client", "secret": {"secretName": "client", "optional": true}},
            {"name": "otel-auto-configmap-ca", "configMap": {"name": "ca", "optional": true}},
        ]}});
        let found: Vec<_> = files(&pod).into_iter().map(|file| (file.kind, file.name)).collect();
        assert_eq!(found, [("Secret", "client".to_owned()), ("ConfigMap", "ca".to_owned())]);
        assert!(files(&json!({"spec": {}})).is_empty());
    }
}
