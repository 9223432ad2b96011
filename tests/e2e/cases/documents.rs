//! The manifests as they are committed, and not as the tests change them; and the guides: what they create is accepted,
//! and services that opt in as they say are injected.

use std::{fs, path::Path};

use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, asking};

/// The guides of languages, by their names in annotations.
const LANGUAGES: [&str; 7] = ["java", "nodejs", "python", "dotnet", "go", "apache-httpd", "nginx"];

/// The other pages with objects of this product or of Kubernetes.
const OTHERS: [&str; 5] = ["first-service", "collectors", "tenants", "agent-upgrades", "gitops"];

/// Kinds of other products, which the API server here does not serve.
const FOREIGN: [&str; 5] = ["Application", "GitRepository", "HelmRelease", "Kustomization", "OCIRepository"];

/// A service of each language opts in as its guide says, with the Instrumentations of the guide.
pub fn services(cluster: &Cluster) {
    // The guides of Go and nginx enable these languages first.
    let _all = cluster.webhook.restart_with(&["--languages", "all"]);
    for language in LANGUAGES {
        let namespace = format!("guide-{language}");
        cluster.instrumented_namespace(&namespace);
        let blocks = manifests(language);
        let (objects, parts): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|block| block["kind"].is_string());
        let annotations: Vec<_> =
            parts.iter().map(|part| &part["metadata"]["annotations"]).filter(|all| all.is_object()).collect();
        assert!(!annotations.is_empty(), "the guide of {language} does not say how to opt in");
        for object in objects {
            let (name, spec) = (object["metadata"]["name"].as_str().expect("a name"), &object["spec"]);
            cluster.instrumentation(&namespace, name, spec);
            let named = asking("named", &[(&format!("inject-{language}"), name)]);
            expect_injected(cluster, &namespace, &named);
        }
        for own in annotations {
            let mut pod = asking("order", &[]);
            pod["metadata"]["annotations"] = own.clone();
            // Among several, the annotation of a guide means the one of its page.
            pod["metadata"]["annotations"][format!("instrumentation.opentelemetry.io/inject-{language}")] =
                "default".into();
            expect_injected(cluster, &namespace, &pod);
        }
    }
}

/// The API server accepts the objects of the other guides and of their examples, and knows all of their fields.
pub fn objects(cluster: &Cluster) {
    let mut applied = 0;
    for (page, objects) in OTHERS.map(|page| (page, manifests(page))).into_iter().chain([examples()]) {
        for mut object in objects {
            let Some(kind) = object["kind"].as_str().map(str::to_owned) else { continue };
            if FOREIGN.contains(&kind.as_str()) {
                continue;
            }
            if object["metadata"]["namespace"].is_string() {
                object["metadata"]["namespace"] = "registered".into();
            }
            let args = ["apply", "--dry-run=server", "--validate=strict", "--filename", "-"];
            let ran = cluster.plane.kubectl_in(&args, &object.to_string());
            assert!(ran.ok, "{page}: {kind} {}: {}", object["metadata"]["name"], ran.stderr);
            applied += 1;
        }
    }
    assert!(applied > OTHERS.len(), "{applied} objects in {OTHERS:?}");
}

fn expect_injected(cluster: &Cluster, namespace: &str, pod: &Value) {
    until(&format!("{namespace}: {} is injected", pod["metadata"]["annotations"]), || {
        let created = cluster.dry_run(namespace, pod);
        (created.pod["metadata"]["labels"]["otel-webhook/injected"] == json!("true")).then_some(())
    });
}

/// What the first guide applies.
fn examples() -> (&'static str, Vec<Value>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/first-service");
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a readable folder").path());
    let texts = files.map(|file| fs::read_to_string(file).expect("a manifest"));
    let objects = texts.flat_map(|text| serde_saphyr::from_multiple::<Value>(&text).expect("YAML")).collect();
    ("examples", objects)
}

/// The YAML blocks of a guide.
fn manifests(page: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides").join(page).with_extension("md");
    let text = fs::read_to_string(path).expect("a guide");
    let blocks = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks.flat_map(|block| serde_saphyr::from_multiple::<Value>(block).expect("YAML")).collect()
}

/// The command of manifests/README.md, with all that is in a cluster when the tests run.
pub fn deleted_but_for_the_crd(cluster: &Cluster) {
    const README: &str = include_str!("../../../manifests/README.md");
    let command = README.lines().find_map(|line| line.strip_prefix("$ kubectl delete "));
    let path = format!("{}/manifests/default", env!("CARGO_MANIFEST_DIR"));
    let command = command.expect("a command").replace("manifests/default", &path);
    let would_go = |more: &[&str]| {
        let args = [&["delete", "--dry-run=server", "--ignore-not-found", "-o", "name"], more].concat();
        let ran = cluster.run(&args);
        let is_there = |kind: &str| ran.stdout.lines().any(|line| line.starts_with(kind));
        (is_there("clusterrole."), is_there("customresourcedefinition."), is_there("namespace/"))
    };
    assert_eq!(would_go(&command.split(' ').collect::<Vec<_>>()), (true, false, false));
    assert_eq!(would_go(&["-k", &path]), (true, true, true), "without the selector");
}
