//! Injected pods in real containers. `make e2e-run` runs it.
//!
//! ```text
//! Deployment + Instrumentation ──> otel-webhook inject ──> kubelet ──> podman kube play
//! ```
//! And the product's own image, as the Dockerfile makes it, answers a review.
//!
//! Images are made by `tests/run/prepare`; what podman does not do of a
//! kubelet's work is done by `kubelet` of the testkit.

#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` makes a value, and a test reads better without the &"
)]

mod image;
mod java;
mod php;
mod tmpfs;
mod web_servers;

use std::io::Write as _;
use std::process::{Command, Stdio};

use otel_webhook_testkit::objects::stream;
use serde_json::{Value, json};

/// Images as `tests/run/prepare` names them.
fn image(name: &str) -> String {
    format!("localhost/otel-webhook-run/{name}:1")
}

/// A name that two runs at once do not share.
fn unique(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// A Deployment whose pods have one container and ask for a language.
fn deployment(name: &str, language: &str, container: Value) -> Value {
    let annotation = format!("instrumentation.opentelemetry.io/inject-{language}");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": {annotation: "true"}},
                "spec": {"containers": [container]},
            },
        },
    })
}

/// What `otel-webhook inject` makes of documents, with an Instrumentation of
/// this specification in a directory.
fn inject(documents: &[Value], spec: &Value) -> Vec<Value> {
    let source = tempfile::tempdir().expect("a folder");
    let instrumentation = json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": "default", "namespace": "shop"}, "spec": spec,
    });
    std::fs::write(source.path().join("default.yaml"), instrumentation.to_string()).expect("a file");
    let mut program = Command::new(env!("CARGO_BIN_EXE_otel-webhook"))
        .args(["inject", "--filename", "-", "--languages", "all", "--output", "json", "--source"])
        .arg(source.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    program.stdin.take().expect("a pipe").write_all(stream(documents).as_bytes()).expect("it reads");
    let output = program.wait_with_output().expect("it ends");
    let reasons = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && reasons.contains(": Injected by"), "{reasons}");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines.lines().map(|line| serde_json::from_str(line).expect("one document a line")).collect()
}
