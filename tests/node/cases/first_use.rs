//! The first use, as the documentation has it.

use serde_json::json;

use crate::cluster::Cluster;
use crate::service::JAVA;
use crate::workload::{self, Running};

const GUIDE: &str = include_str!("../../../docs/guides/first-service.md");

/// The namespace and the Deployment of the guide.
const SHOP: &str = "shop";
const ORDER: &str = "order";

/// The guide's commands inject a Deployment that runs without an agent; `status` reports that.
pub fn first_service(cluster: &Cluster) {
    let (_, steps) = GUIDE.split_once("\n## 3. Create an Instrumentation\n").expect("the third step");
    let (steps, _) = steps.split_once("\n## 6. ").expect("the sixth step");
    let (_, manifest) = steps.split_once("```yaml\n").expect("a manifest");
    let (manifest, _) = manifest.split_once("```").expect("its end");
    let commands: Vec<_> = steps.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let [create_namespace, apply, patch, wait, list, explain] = commands[..] else {
        panic!("the guide has other commands: {commands:?}");
    };
    cluster.shell(create_namespace);
    let mut pod = workload::service(ORDER, JAVA, "initContainer");
    pod["metadata"]["annotations"] = json!({});
    cluster.apply(&workload::deployment(SHOP, ORDER, 1, pod));
    let [before] = &Running::of_deployment(cluster, SHOP, ORDER)[..] else { panic!("one pod") };
    assert_eq!(before.get()["metadata"]["labels"]["otel-webhook/injected"], json!(null));

    cluster.shell(&format!("cat >instrumentation.yaml <<'END'\n{manifest}\nEND"));
    cluster.shell(apply);
    cluster.shell(patch);
    cluster.shell(wait);
    let listed = cluster.shell(list);
    let injected = listed.lines().find(|line| line.contains("Running")).expect("a pod that runs");
    assert!(injected.ends_with("true"), "{listed}");
    let explained = cluster.shell(explain);
    assert!(explained.contains("Injected"), "{explained}");
    let status = cluster.shell("otel-webhook status --namespace shop");
    let row = status.lines().find(|line| line.contains("deployment/order")).expect("a row of the Deployment");
    assert!(row.contains("java") && row.contains("injected"), "{status}");
    let [after] = &Running::of_deployment(cluster, SHOP, ORDER)[..] else { panic!("one pod") };
    after.log_with("opentelemetry-javaagent - version: ");
}
