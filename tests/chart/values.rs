//! The values themselves: each is documented and in the schema, and the schema has no others.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::helm::{chart, matrix};

fn read(name: &str) -> String {
    fs::read_to_string(chart().join(name)).expect(name)
}

/// Names that the schema lets through for the sake of parent charts.
const HANDED_DOWN: [&str; 4] = ["enabled", "tags", "global.imageRegistry", "global.imagePullSecrets"];

/// Values whose fields are Kubernetes', or the chart's own by default alone.
const WHOLE: [&str; 17] = [
    "certificates.certManager.issuerRef",
    "certificates.certManager.privateKey",
    "controller.resources",
    "dashboard.labels",
    "defaultInstrumentation.spec",
    "dnsConfig",
    "affinity",
    "injection.agentSizes",
    "injection.images",
    "livenessProbe",
    "nodeSelector",
    "podSecurityContext",
    "readinessProbe",
    "resources",
    "securityContext",
    "strategy",
    "global",
];

#[test]
fn every_value_is_documented_and_in_the_schema() {
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).expect("YAML");
    let mut found = BTreeSet::new();
    collect_values(&values, "", &mut found);
    let readme = read("README.md");
    for name in &found {
        let row = readme.lines().find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in README.md"));
        assert!(!row.ends_with("|  |"), "{name} has no words in README.md");
    }
    let schema: Value = serde_json::from_str(&read("values.schema.json")).expect("JSON");
    let mut known = BTreeSet::new();
    collect_schema(&schema, "", &mut known);
    for name in HANDED_DOWN {
        assert!(known.remove(name), "{name}");
    }
    assert_eq!(found, known, "values.yaml and values.schema.json");
}

/// A value that no test gives could as well do nothing.
#[test]
fn every_value_is_given_somewhere_in_the_matrix() {
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).expect("YAML");
    let mut missing = BTreeSet::new();
    collect_values(&values, "", &mut missing);
    for file in matrix() {
        let given: Value = serde_saphyr::from_str(&fs::read_to_string(file).expect("values")).expect("YAML");
        missing.retain(|name| given.pointer(&format!("/{}", name.replace('.', "/"))).is_none());
    }
    assert!(missing.is_empty(), "{missing:?}");
}

fn collect_values(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value.as_object() {
        Some(object) if !object.is_empty() && !WHOLE.contains(&path) => {
            for (name, value) in object {
                collect_values(value, &join(path, name), found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

fn collect_schema(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    match schema["properties"].as_object() {
        Some(properties) if path == "global" => {
            found.insert(path.to_owned());
            found.extend(properties.keys().map(|name| join(path, name)));
        }
        Some(properties) if !WHOLE.contains(&path) => {
            assert_eq!(schema["additionalProperties"], false, "{path} takes anything");
            for (name, schema) in properties {
                collect_schema(schema, &join(path, name), found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
