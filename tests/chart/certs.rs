//! The examples for cert-manager's issuers: they are what they say, and for the names that are served.

use std::fs;
use std::path::PathBuf;

use otel_webhook_server::tls::service_names;
use serde_json::{Value, json};

use crate::helm::{objects, repository};
use crate::matrix::check;
use crate::schemas::Schemas;

fn examples() -> Vec<(PathBuf, Vec<Value>)> {
    let files = fs::read_dir(repository("certs/cert-manager")).expect("the examples").flatten();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("an example");
        (path, objects(&text))
    };
    let examples: Vec<_> = files.map(|file| read(file.path())).collect();
    assert!(examples.len() >= 4, "{examples:?}");
    examples
}

#[test]
fn every_field_of_the_examples_exists() {
    let all: Vec<_> = examples().into_iter().flat_map(|(_, objects)| objects).collect();
    for version in Schemas::versions() {
        check(&version, &repository("certs/cert-manager"), &all);
    }
}

#[test]
fn each_example_issues_the_names_of_the_service_by_an_issuer_that_it_has() {
    let names = service_names("otel-webhook", "otel-webhook", "cluster.local", &[]);
    for (path, objects) in examples() {
        let certificate = objects.last().expect("objects");
        assert_eq!(certificate["kind"], "Certificate", "{}", path.display());
        assert_eq!(certificate["spec"]["dnsNames"], json!(names), "{}", path.display());
        // What manifests/mounted mounts, and what its configurations name to cainjector.
        assert_eq!(certificate["spec"]["secretName"], "otel-webhook-tls");
        assert_eq!(certificate["metadata"], json!({"name": "otel-webhook", "namespace": "otel-webhook"}));
        let issuer = &certificate["spec"]["issuerRef"];
        let is_issuer =
            |object: &Value| object["kind"] == issuer["kind"] && object["metadata"]["name"] == issuer["name"];
        assert!(objects.iter().any(is_issuer), "{}: {issuer}", path.display());
    }
}

/// The chart makes the same where it is given no issuer.
#[test]
fn the_self_signed_example_is_what_the_chart_makes() {
    let read = |path: &str| {
        let text = fs::read_to_string(repository(path)).expect("a file");
        let mut read = objects(&text);
        for object in &mut read {
            object["metadata"].as_object_mut().expect("metadata").remove("labels");
        }
        read.sort_by_key(|object| (object["kind"].to_string(), object["metadata"]["name"].to_string()));
        read
    };
    assert_eq!(read("certs/cert-manager/self-signed.yaml"), read("manifests/certmanager/certificates.yaml"));
}
