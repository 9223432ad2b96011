//! The Instrumentation, field by field.

use otel_webhook_api::{Version, crd};
use serde_json::Value;

use super::{beginning, code, prose, table};

/// Fields whose parts are documented by Kubernetes: name and page.
const OF_KUBERNETES: [(&str, &str); 9] = [
    ("env", "kubernetes-api/workload-resources/pod-v1/#environment-variables"),
    ("resources", "kubernetes-api/workload-resources/pod-v1/#resources"),
    ("resourceRequirements", "kubernetes-api/workload-resources/pod-v1/#resources"),
    ("securityContext", "kubernetes-api/workload-resources/pod-v1/#security-context-1"),
    ("initContainerSecurityContext", "kubernetes-api/workload-resources/pod-v1/#security-context-1"),
    ("volumeClaimTemplate", "kubernetes-api/config-and-storage-resources/persistent-volume-claim-v1/"),
    ("selector", "kubernetes-api/common-definitions/label-selector/"),
    ("namespaceSelector", "kubernetes-api/common-definitions/label-selector/"),
    ("attrs", "kubernetes-api/workload-resources/pod-v1/#environment-variables"),
];

pub fn page() -> String {
    let purpose = "Every field of `Instrumentation` (`opentelemetry.io/v1alpha1`), as in the \
                   CustomResourceDefinition. A list is shown as `field[]`, a map as `field.*`. \
                   [Validation](injection.md#validation) says what is rejected beyond the types. \
                   [Fields of v1beta1](instrumentation-v1beta1.md) has what differs there.";
    let mut text = beginning("Fields of Instrumentation", purpose);
    for part in ["spec", "status"] {
        let schema = schema(Version::V1alpha1);
        text += &format!("\n## {part}\n\n{}\n\n", prose(described(&schema["properties"][part])));
        text += &table(COLUMNS, rows(part, Version::V1alpha1));
    }
    text
}

/// What differs in v1beta1.
pub fn page_of_beta() -> String {
    let purpose = "The fields of `opentelemetry.io/v1beta1` that [v1alpha1](instrumentation.md) does not have, or has with \
                   another type or meaning; all others are the same. [Instrumentation v1beta1](../guides/v1beta1.md) says \
                   how the two are converted.";
    let known = rows("spec", Version::V1alpha1);
    let is_own = |row: &[String; 3]| !known.contains(row);
    let own = rows("spec", Version::V1beta1).into_iter().filter(is_own);
    beginning("Fields of Instrumentation v1beta1", purpose) + "\n" + &table(COLUMNS, own)
}

const COLUMNS: [&str; 3] = ["field", "type", "meaning"];

fn schema(version: Version) -> Value {
    let crd = crd::of(&[version], version);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

fn rows(part: &str, version: Version) -> Vec<[String; 3]> {
    let mut rows = Vec::new();
    fields(part, &schema(version)["properties"][part], &mut rows);
    rows
}

fn described(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

fn fields(path: &str, schema: &Value, rows: &mut Vec<[String; 3]>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let items = &field["items"];
        let map = &field["additionalProperties"];
        let (below, of) = match (items.is_object(), map.is_object()) {
            (true, _) => (format!("{path}.{name}[]"), items),
            (_, true) => (format!("{path}.{name}.*"), map),
            _ => (format!("{path}.{name}"), field),
        };
        let known = OF_KUBERNETES.iter().find(|row| row.0 == name && of["properties"].is_object());
        let link =
            known.map(|(_, page)| format!(" See [Kubernetes](https://kubernetes.io/docs/reference/{page})."));
        let meaning = format!("{}{}", meaning(field, of), link.clone().unwrap_or_default());
        rows.push([code(&below), kind(of), meaning]);
        if link.is_none() {
            fields(&below, of, rows);
        }
    }
}

fn kind(field: &Value) -> String {
    match field["type"].as_str() {
        Some(kind) => kind.to_owned(),
        None if field["x-kubernetes-int-or-string"] == true => "integer or string".to_owned(),
        None => "any".to_owned(),
    }
}

/// The description, with the values of an enumeration.
fn meaning(field: &Value, of: &Value) -> String {
    let text = prose(described(field));
    let values = of["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let values: Vec<_> = values.map(code).collect();
    if values.is_empty() { text } else { format!("{text} One of {}.", values.join(", ")) }
}

#[test]
fn every_field_has_a_meaning() {
    for version in Version::ALL {
        let rows = [rows("spec", version), rows("status", version)].concat();
        assert!(rows.len() > 80, "only {} fields", rows.len());
        for [name, _, meaning] in rows {
            assert!(!meaning.is_empty(), "{name} of {version} has no description in crates/api");
        }
    }
}
