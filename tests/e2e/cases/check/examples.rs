//! The examples of `--help`, run as they are printed, where the webhook is installed.

use std::fs;
use std::process::Command;

use otel_webhook_testkit::cluster::control_plane::ControlPlane;
use serde_json::{Value, json};

use crate::program::{PROGRAM, output};

/// What needs more than a cluster: an address of the webhook.
const ELSEWHERE: &str = "--review https://";

const INSTRUMENTATION: &str = include_str!("../../../../examples/instrumentation.yaml");
const DEPLOYMENT: &str = include_str!("../../../../examples/deployment.yaml");

/// A node that can mount images.
const NODES: &str = "\
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {kubernetes.io/os: linux}}
status: {nodeInfo: {kubeletVersion: v1.36.3, containerRuntimeVersion: containerd://2.2.0}}
";

pub fn each(plane: &ControlPlane) {
    let folder = plane.dir().join("examples");
    fs::create_dir_all(folder.join("instrumentations")).expect("a folder");
    for (path, text) in [
        ("instrumentations/shop.yaml", INSTRUMENTATION),
        ("instrumentation.yaml", INSTRUMENTATION),
        ("app.yaml", DEPLOYMENT),
        ("nodes.yaml", NODES),
        ("kubeconfig", &kubeconfig(plane)),
    ] {
        fs::write(folder.join(path), text).expect("the scratch folder is writable");
    }
    let program = std::path::Path::new(PROGRAM).parent().expect("a folder");
    let path = format!("{}:{}:/usr/bin:/bin", program.display(), plane.tools().display());
    plane.run_kubectl(&["label", "deployment", "order", "team=payments", "--namespace", "shop"]);
    for (subcommand, count) in [("explain", 7), ("check", 7)] {
        let run = |line: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", line]).current_dir(&folder).env_clear().env("PATH", &path);
            command.env("KUBECONFIG", folder.join("kubeconfig")).env("HOME", &folder);
            output(&mut command)
        };
        let (help, ..) = run(&format!("otel-webhook {subcommand} --help"));
        let examples = help.split_once("Examples:\n").expect("examples").1.lines();
        let lines = examples.filter_map(|line| line.strip_prefix("    "));
        let lines: Vec<_> = lines.filter(|line| !line.contains(ELSEWHERE)).collect();
        assert_eq!(lines.len(), count, "{lines:?}");
        for line in lines {
            let (out, err, code) = run(line);
            // In a pipeline, the warning about the pods that run without an agent counts.
            let expected = i32::from(line.contains("--strict"));
            assert!(code == Some(expected) && !out.is_empty(), "{line}: {code:?}\n{out}{err}");
            if line.contains("explain") {
                assert!(out.contains("order") && out.contains("Injected"), "{line}\n{out}{err}");
            }
        }
    }
    // With the flags of the webhook's pods: nothing is assumed.
    let mut command = Command::new(PROGRAM);
    command.env_clear().env("KUBECONFIG", folder.join("kubeconfig"));
    let (out, _, code) = output(command.args(["explain", "deployment/order", "-n", "shop"]));
    let name = out.split("    1 (").nth(1).and_then(|rest| rest.split(')').next()).unwrap_or_default();
    let expected = "\
Deployment/order in namespace shop
  CONTAINER  LANGUAGE  OUTCOME   INSTRUMENTATION  REASON
  app        java      Injected  shop/default     injected
";
    assert!(code == Some(0) && out.starts_with(expected), "{out}");
    let pods = format!(
        "  running pods: 1\n    1 ({name}): not injected\n  to inject as into new pods: kubectl rollout restart \
         deployment/order -n shop\n"
    );
    assert!(out.ends_with(&pods), "{out}");
}

/// The administrator's kubeconfig, with a context of the name in the examples.
fn kubeconfig(plane: &ControlPlane) -> String {
    let text = fs::read_to_string(plane.kubeconfig()).expect("the administrator's kubeconfig");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    let mut context = config["contexts"][0].clone();
    context["name"] = json!("production");
    config["contexts"].as_array_mut().expect("a list").push(context);
    config.to_string()
}
