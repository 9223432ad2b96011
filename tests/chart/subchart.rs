//! The chart as a part of another one, which hands down its own values.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::helm::{HELMS, chart, deployment, objects, of_kind, run, tool};

const PARENT: &str = r#"
apiVersion: v2
name: parent
version: 1.0.0
dependencies:
  - name: otel-webhook
    version: "*"
    condition: otel-webhook.enabled
    tags: [telemetry]
"#;

const VALUES: &str = "
global: {anything: goes, imageRegistry: mirror.example.com}
tags: {telemetry: true}
otel-webhook:
  enabled: true
  replicaCount: 4
";

#[test]
fn a_parent_hands_down_what_it_likes_and_is_held_to_the_schema() {
    let parent = tempfile::tempdir().expect("a folder");
    fs::write(parent.path().join("Chart.yaml"), PARENT).expect("written");
    fs::write(parent.path().join("values.yaml"), VALUES).expect("written");
    fs::create_dir(parent.path().join("charts")).expect("a folder");
    run(Command::new("cp").arg("-R").arg(chart()).arg(parent.path().join("charts"))).expect("copied");
    for helm in HELMS {
        let rendered = template(helm, parent.path(), &[]).expect("rendered");
        let rendered = objects(&rendered);
        let deployment = deployment(&rendered, "webhook");
        assert_eq!(deployment["spec"]["replicas"], 4);
        let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str();
        assert!(image.is_some_and(|image| image.starts_with("mirror.example.com/")), "{image:?}");

        let off = template(helm, parent.path(), &["--set", "otel-webhook.enabled=false"]).expect("rendered");
        assert!(of_kind(&objects(&off), "Deployment").is_empty());

        let complaint =
            template(helm, parent.path(), &["--set", "otel-webhook.replicas=4"]).expect_err("unknown");
        assert!(complaint.contains("'replicas' not allowed"), "{complaint}");
    }
}

fn template(helm: &str, parent: &Path, args: &[&str]) -> Result<String, String> {
    run(Command::new(tool(helm)).args(["template", "stack"]).arg(parent).args(args))
}
