//! Instrumentations with mistakes, as files that were not validated may have them: for each field
//! that reaches a pod, values that no pod can have.

use otel_webhook_api::defaults::{LANGUAGES, LanguageDefaults};
use serde_json::{Value, json};

use super::{agents, choices::Choices};

/// Lists of variables.
const VARIABLES: [&str; 26] = [
    r#"[{"name": "A=B", "value": "x"}]"#,
    r#"[{"name": "", "value": "x"}]"#,
    r#"[{"value": "x"}]"#,
    r#"[{"name": "ü", "value": "x"}]"#,
    r#"[{"name": "A\n", "value": "x"}]"#,
    r#"[{"name": "A", "value": 5}]"#,
    r#"[{"name": 5}]"#,
    r#"{"name": "A", "value": "x"}"#,
    r#"[["A", "x"]]"#,
    "[null]",
    r#""A=x""#,
    r#"[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]"#,
    r#"[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "a", "key": "b"}}}]"#,
    r#"[{"name": "A", "valueFrom": {"fieldref": {"fieldPath": "metadata.name"}}}]"#,
    r#"[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.containers"}}}]"#,
    r#"[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a b']"}}}]"#,
    r#"[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v2"}}}]"#,
    r#"[{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1"}}}]"#,
    r#"[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a/b", "key": "c"}}}]"#,
    r#"[{"name": "A", "valueFrom": {"secretKeyRef": {"key": "c"}}}]"#,
    r#"[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b c"}}}]"#,
    r#"[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": ".."}}}]"#,
    r#"[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.gpu"}}}]"#,
    r#"[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1Mi"}}}]"#,
    r#"[{"name": "A", "valueFrom": {"fileKeyRef": {"key": "k", "path": "p", "volumeName": "data"}}}]"#,
    r#"[{"name": "A", "valueFrom": "metadata.name"}]"#,
];

const POLICIES: [&str; 4] = [r#""Sometimes""#, r#"" ""#, r#""always""#, "5"];

const CONTEXTS: [&str; 12] = [
    r#"{"runAsUser": -1}"#,
    r#"{"runAsGroup": 2147483648}"#,
    r#"{"runAsUser": "root"}"#,
    r#"{"procMount": "unmasked"}"#,
    r#"{"procMount": "Unmasked"}"#,
    r#"{"privileged": true, "allowPrivilegeEscalation": false}"#,
    r#"{"capabilities": {"add": ["CAP_SYS_ADMIN"]}, "allowPrivilegeEscalation": false}"#,
    r#"{"capabilities": {"drop": "ALL"}}"#,
    r#"{"seccompProfile": {"type": "Sometimes"}}"#,
    r#"{"seccompProfile": {"type": "Localhost", "localhostProfile": "/a"}}"#,
    r#"{"appArmorProfile": {"type": "RuntimeDefault", "localhostProfile": "a"}}"#,
    r#"[{"runAsUser": 1}]"#,
];

const CERTIFICATES: [&str; 7] = [
    r#"{"secretName": "a/b"}"#,
    r#"{"secretName": "Certs"}"#,
    r#"{"secretName": "a_b"}"#,
    r#"{"secretName": " "}"#,
    r#"{"configMapName": "a:b"}"#,
    r#"{"configMapName": 5}"#,
    r#"["certs"]"#,
];

const IMAGES: [&str; 4] = [r#"" ""#, r#""agent:1 ""#, r#""\tagent:1""#, "5"];

const SIZES: [&str; 5] = [r#""abc""#, r#""-1Gi""#, r#""1Gib""#, "0.5", "[]"];

const RESOURCES: [&str; 13] = [
    r#"{"limits": {"cpu": "lots"}}"#,
    r#"{"requests": {"memory": "-1"}}"#,
    r#"{"limits": {"gpu": 1}}"#,
    r#"{"requests": {"example.com/gpu": 1}}"#,
    r#"{"requests": {"example.com/gpu": 1}, "limits": {"example.com/gpu": 2}}"#,
    r#"{"limits": {"example.com/gpu": "500m"}}"#,
    r#"{"limits": {"hugepages-2Mi": "3Mi", "memory": "1Gi"}}"#,
    r#"{"limits": {"hugepages-2Mi": "2Mi"}, "requests": {}}"#,
    r#"{"limits": {"requests.example.com/gpu": 1}}"#,
    r#"{"claims": [{"request": "a"}]}"#,
    r#"{"claims": {"name": "a"}}"#,
    r#"{"limits": ["cpu"]}"#,
    r#"[{"limits": {}}]"#,
];

const CLAIMS: [&str; 12] = [
    r#"{"spec": {"storageClassName": "fast"}}"#,
    r#"{"spec": {"accessModes": ["ReadWriteOnce"]}}"#,
    r#"{"spec": {"accessModes": [], "resources": {"requests": {"storage": "1Gi"}}}}"#,
    r#"{"spec": {"accessModes": ["Sometimes"], "resources": {"requests": {"storage": "1Gi"}}}}"#,
    r#"{"spec": {"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}"#,
    r#"{"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "much"}}}}"#,
    r#"{"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "0"}}}}"#,
    r#"{"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "Fast!"}}"#,
    r#"{"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Block"}}"#,
    r#"{"metadata": {"name": "own"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}"#,
    r#"{"metadata": {"labels": {"a b": "c"}}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}"#,
    r#""claim""#,
];

const EXTENSIONS: [&str; 5] = [
    r#"[{"image": " ", "dir": "/x"}]"#,
    r#"[{"image": "", "dir": "/x"}]"#,
    r#"[{"image": "a:1", "dir": ""}]"#,
    r#"[["a:1", "/x"]]"#,
    r#"[{"dir": "/x"}]"#,
];

const PATHS: [&str; 5] = [r#""/a:b""#, r#""/a b""#, r#""/""#, r#""../..""#, "5"];

/// Makes one to three mistakes; returns where, each with the value.
pub fn break_some(choices: &mut Choices, instrumentation: &mut Value) -> Vec<String> {
    (0..=choices.below(3)).map(|_| break_one(choices, &mut instrumentation["spec"])).collect()
}

fn break_one(choices: &mut Choices, spec: &mut Value) -> String {
    if choices.chance(10) {
        return agents::break_one(choices, spec);
    }
    if choices.chance(40) {
        let (field, values): (_, &[&str]) = match choices.below(4) {
            0 => ("env", &VARIABLES),
            1 => ("imagePullPolicy", &POLICIES),
            2 => ("initContainerSecurityContext", &CONTEXTS),
            _ => ("exporter", &CERTIFICATES),
        };
        let value = parsed(choices.one(values));
        let value = if field == "exporter" { json!({"tls": value}) } else { value };
        return set(spec, field, value);
    }
    let &LanguageDefaults { field: language, resources, .. } = LANGUAGES[choices.below(LANGUAGES.len())];
    if !spec[language].is_object() {
        spec[language] = json!({});
    }
    let (field, values): (_, &[&str]) = match (choices.below(7), language) {
        (0, _) => ("env", &VARIABLES),
        (1, _) => ("image", &IMAGES),
        (2, _) => ("volumeLimitSize", &SIZES),
        (3, _) => ("volumeClaimTemplate", &CLAIMS),
        (4, "java") => ("extensions", &EXTENSIONS),
        (4, "go") => ("securityContext", &CONTEXTS),
        (4, "apacheHttpd") => ("configPath", &PATHS),
        (4, "nginx") => ("configFile", &PATHS),
        _ => (resources, &RESOURCES),
    };
    let value = parsed(choices.one(values));
    format!("{language}.{}", set(&mut spec[language], field, value))
}

fn set(object: &mut Value, field: &str, value: Value) -> String {
    let shown = format!("{field}: {value}");
    object[field] = value;
    shown
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
