//! Every file of the matrix: it is linted, rendered alike by both helms, and made of fields that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::helm::{HELMS, chart, matrix, objects, run, template, template_of, tool};
use crate::schemas::Schemas;

#[test]
fn the_chart_is_without_a_complaint() {
    for helm in HELMS {
        for values in matrix() {
            let mut lint = Command::new(tool(helm));
            let said = run(lint.args(["lint", "--strict", "--values"]).args([values, chart()]));
            let said = said.unwrap_or_else(|complaint| panic!("{helm}: {complaint}"));
            for line in said.lines().filter(|line| line.starts_with('[')) {
                // An icon is all that is missing.
                assert_eq!(line, "[INFO] Chart.yaml: icon is recommended", "{helm}");
            }
        }
    }
}

/// Charts are rendered by one helm and upgraded by the other.
#[test]
fn both_helms_render_the_same_objects() {
    for values in matrix() {
        let [three, four] = HELMS.map(|helm| by_name(&objects(&template_of(helm, &values))));
        assert_eq!(three, four, "{}", values.display());
    }
}

fn by_name(objects: &[Value]) -> BTreeMap<(String, String), Value> {
    let name = |object: &Value| (object["kind"].to_string(), object["metadata"]["name"].to_string());
    let named: BTreeMap<_, _> = objects.iter().map(|object| (name(object), object.clone())).collect();
    assert_eq!(named.len(), objects.len(), "two objects have one name");
    named
}

/// An API server drops a field that it does not know, or refuses the object.
#[test]
fn every_field_exists_in_the_oldest_and_the_newest_kubernetes() {
    for version in Schemas::versions() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut rendered = Vec::new();
        for values in matrix() {
            let kubernetes = ["--kube-version", &version, "--values", values.to_str().expect("a path")];
            for helm in HELMS {
                let text = template(helm, &kubernetes).expect("rendered");
                let name = values.file_stem().expect("a name").to_string_lossy();
                let file = folder.path().join(format!("{name}-{helm}.yaml"));
                fs::write(&file, &text).expect("written");
                rendered.extend(objects(&text));
            }
        }
        check(&version, folder.path(), &rendered);
    }
}

/// Holds the objects in a folder against what this version of Kubernetes knows; `rendered` is all of them.
pub fn check(version: &str, manifests: &std::path::Path, rendered: &[Value]) {
    let kinds: BTreeSet<_> = rendered.iter().map(kind).collect();
    let schemas = Schemas::of(version, &kinds);
    let mut kubeconform = Command::new(tool("kubeconform"));
    // Kinds without a schema fail: none is skipped.
    kubeconform.args(["-strict", "-output", "json", "-summary", "-schema-location", &schemas.location()]);
    let said = run(kubeconform.arg(manifests)).unwrap_or_else(|said| panic!("{version}: {said}"));
    let summary: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(summary["summary"]["valid"], rendered.len(), "{version}: {said}");
}

fn kind(object: &Value) -> (String, String) {
    let text = |field: &str| object[field].as_str().expect("a kind").to_owned();
    (text("apiVersion"), text("kind"))
}

/// The check itself: it would see a field that does not exist, and a value of the wrong type.
#[test]
fn the_schemas_are_strict() {
    for version in Schemas::versions() {
        let kinds = BTreeSet::from([("policy/v1".to_owned(), "PodDisruptionBudget".to_owned())]);
        let schemas = Schemas::of(&version, &kinds);
        for (spec, complaint) in [
            ("minAvailble: 1", "additional properties 'minAvailble' not allowed"),
            ("selector: []", "got array, want object"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("object.yaml");
            let text = format!("apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {{{spec}}}\n");
            fs::write(&file, text).expect("written");
            let mut kubeconform = Command::new(tool("kubeconform"));
            kubeconform.args(["-strict", "-schema-location", &schemas.location()]);
            let said = run(kubeconform.arg(&file)).expect_err(spec);
            assert!(said.contains(complaint), "{said}");
        }
    }
}
