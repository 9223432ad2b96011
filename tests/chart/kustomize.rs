//! The manifests: each overlay says what the chart says, so that neither can drift from the other.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::helm::{chart, objects, repository, run, tool};

/// Labels and annotations that only mean something to helm.
const OF_HELM: [&str; 3] = ["helm.sh/chart", "app.kubernetes.io/managed-by", "helm.sh/resource-policy"];

#[test]
fn the_manifests_say_what_the_chart_says() {
    for (overlay, mode) in [("default", "managed"), ("overlays/cert-manager", "cert-manager")] {
        let built = build(&repository("manifests").join(overlay)).expect(overlay);
        // Not in an overlay, since Kubernetes 1.29 does not have its kinds.
        let set = [&*format!("certificates.mode={mode}"), "rbac.admissionPolicy=false"];
        assert_same(without_namespace(built), of_chart(&set));
    }
}

#[test]
fn the_policy_is_that_of_the_chart() {
    let built = build(&repository("manifests/policy")).expect("built");
    let mut chart = of_chart(&["certificates.mode=managed"]);
    chart.retain(|(kind, _), _| kind.starts_with("ValidatingAdmissionPolicy"));
    assert_eq!(chart.len(), 2);
    assert_same(built, chart);
}

/// As manifests/README.md adds it to an overlay.
#[test]
fn restarts_are_a_component_of_any_overlay() {
    let readme = fs::read_to_string(repository("manifests/README.md")).expect("the README");
    let component = "components: [https://github.com/otel-webhook/otel-webhook//manifests/restarts]";
    assert!(readme.contains(component), "manifests/README.md does not have: {component}");
    let copied = copied();
    for (overlay, mode) in [("default", "managed"), ("overlays/cert-manager", "cert-manager")] {
        let own = copied.path().join("manifests/own");
        fs::create_dir_all(&own).expect("a folder");
        let text = format!("resources: [../{overlay}]\ncomponents: [../restarts]\n");
        fs::write(own.join("kustomization.yaml"), text).expect("written");
        let mode = format!("certificates.mode={mode}");
        let mut chart = of_chart(&[&mode, "controller.restarts.enabled=true"]);
        chart.retain(|(kind, name), _| {
            !kind.starts_with("ValidatingAdmissionPolicy") || name.ends_with("-controller-restarts")
        });
        assert_same(without_namespace(build(&own).expect(overlay)), chart);
    }
}

#[test]
fn a_certificate_of_ones_own_is_put_beside_the_overlay() {
    let copied = copied();
    let overlay = copied.path().join("manifests/overlays/files");
    let complaint = build(&overlay).expect_err("there is no certificate yet");
    assert!(complaint.contains("tls.crt"), "{complaint}");

    let program = env!("CARGO_BIN_EXE_otel-webhook");
    run(Command::new(program).args(["certs", "--out"]).arg(&overlay)).expect("a certificate");
    let authority = fs::read_to_string(overlay.join("ca.crt")).expect("a CA");
    let mut built = build(&overlay).expect("built");
    let secret = built.remove(&("Secret".to_owned(), "otel-webhook-tls".to_owned())).expect("a Secret");
    assert_eq!(secret["type"], "kubernetes.io/tls");
    let set = ["certificates.mode=files", "certificates.files.secretName=otel-webhook-tls"];
    let bundle = format!("certificates.files.caBundle={authority}");
    assert_same(without_namespace(built), of_chart(&[set[0], set[1], &bundle]));
}

/// A folder with a copy of the manifests.
fn copied() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    run(Command::new("cp").arg("-R").arg(repository("manifests")).arg(folder.path())).expect("copied");
    folder
}

fn assert_same(manifests: Objects, mut chart: Objects) {
    for (name, object) in manifests {
        let expected = chart.remove(&name).unwrap_or_else(|| panic!("the chart has no {name:?}"));
        assert!(object == expected, "{name:?}\nmanifests: {object}\nchart: {expected}");
    }
    assert!(chart.is_empty(), "only in the chart: {:?}", chart.keys());
}

type Objects = BTreeMap<(String, String), Value>;

/// What `kubectl apply -k` would send.
fn build(overlay: &Path) -> Result<Objects, String> {
    let text = run(Command::new(tool("kubectl")).arg("kustomize").arg(overlay))?;
    Ok(by_name(objects(&text)))
}

/// The chart as it is installed by its own name, without its test, and without the copy of its settings.
fn of_chart(set: &[&str]) -> Objects {
    let mut command = Command::new(tool("helm3"));
    command.args(["template", "otel-webhook", "--namespace", "otel-webhook", "--skip-tests"]).arg(chart());
    command.args(["--set-json", "settings.readers=[]"]);
    command.args(set.iter().flat_map(|value| ["--set", value]));
    by_name(objects(&run(&mut command).expect("rendered")))
}

fn by_name(objects: Vec<Value>) -> Objects {
    let text = |value: &Value| value.as_str().expect("a name").to_owned();
    let named = objects.into_iter().map(|mut object| {
        if object["kind"] == "CustomResourceDefinition" {
            // As the program prints it, for those who apply it by hand.
            object["metadata"] = json!({"name": object["metadata"]["name"]});
        }
        for field in ["labels", "annotations"] {
            let metadata = object["metadata"].as_object_mut().expect("metadata");
            if let Some(texts) = metadata.get_mut(field).and_then(Value::as_object_mut) {
                texts.retain(|name, _| !OF_HELM.contains(&name.as_str()));
                if texts.is_empty() {
                    metadata.remove(field);
                }
            }
        }
        for webhook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
            strip_newlines(&mut webhook["clientConfig"]);
        }
        ((text(&object["kind"]), text(&object["metadata"]["name"])), object)
    });
    named.collect()
}

/// kustomize folds base64; the API server does not mind.
fn strip_newlines(config: &mut Value) {
    if let Some(bundle) = config.get_mut("caBundle") {
        *bundle = bundle.as_str().expect("base64").split_whitespace().collect::<String>().into();
    }
}

/// helm has its own way to make the namespace.
fn without_namespace(mut objects: Objects) -> Objects {
    let namespace = ("Namespace".to_owned(), "otel-webhook".to_owned());
    objects.remove(&namespace).expect("a namespace");
    objects
}
