//! Jobs whose pods get a container for Go: it does not keep them from their end.

use serde_json::json;

use crate::cluster::{Cluster, HOME};
use crate::workload::{APP, Running, asking, deployment};

const NAMESPACE: &str = "jobs";

/// A Job with Go completes, and the container runs in a Deployment as before.
pub fn go(cluster: &Cluster) {
    cluster.shell(&format!(
        "helm upgrade otel-webhook charts/otel-webhook --namespace {HOME} --reuse-values --set 'injection.languages={{java,nodejs,python,go,sdk}}'",
    ));
    cluster.rolled_out(HOME, "otel-webhook");
    cluster.namespace(NAMESPACE, &json!({}));
    cluster.instrumentation(NAMESPACE, "default", &json!({}));
    let asks = [("inject-go", "true"), ("otel-go-auto-target-exe", "/bin/busybox")];
    let mut pod = asking("", &asks, json!({"image": APP, "command": ["busybox", "sleep", "2"]}));
    pod["spec"]["restartPolicy"] = "Never".into();
    cluster.apply(&json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "count", "namespace": NAMESPACE},
        "spec": {"template": {"metadata": pod["metadata"], "spec": pod["spec"]}},
    }));
    cluster.shell(&format!(
        "kubectl wait job/count --namespace {NAMESPACE} --for=condition=Complete --timeout=300s"
    ));
    let [ended] = &Running::labelled(cluster, NAMESPACE, "job-name=count")[..] else { panic!("one pod") };
    let ended = ended.get();
    assert_eq!(ended["metadata"]["labels"]["otel-webhook/injected"], "true");
    assert_eq!(ended["status"]["phase"], "Succeeded");

    let serves = asking("", &asks, json!({"image": APP, "command": ["busybox", "sleep", "100000"]}));
    cluster.apply(&deployment(NAMESPACE, "serves", 1, serves));
    let [runs] = &Running::of_deployment(cluster, NAMESPACE, "serves")[..] else { panic!("one pod") };
    let containers = runs.get()["spec"]["containers"].as_array().map_or(0, Vec::len);
    assert_eq!(containers, 2, "the application and the container for Go");
}
