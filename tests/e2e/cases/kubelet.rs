//! Pods that the kubelet would not start or not end with the operator's containers (D41, D42), as the API server
//! takes them.

use otel_webhook_testkit::cluster::created::{AGENT, Created, name};
use otel_webhook_testkit::objects::items;
use serde_json::{Value, json};

use crate::cluster::{Cluster, asking, java};

const SIDECAR: &str = "opentelemetry-auto-instrumentation";

/// The sidecar in the pod of a Job is the last of its init containers.
pub fn go_in_a_job(cluster: &Cluster) {
    let namespace = "go-in-a-job";
    cluster.instrumented_namespace(namespace);
    let _all = cluster.webhook.restart_with(&["--languages", "all"]);
    let mut go = asking("", &[("inject-go", "true"), ("otel-go-auto-target-exe", "/app")]);
    go["spec"]["restartPolicy"] = "Never".into();
    go["spec"]["initContainers"] = json!([{"name": "setup", "image": "registry.example.com/setup:1.0"}]);
    let metadata = json!({"labels": {"app": "report"}, "annotations": go["metadata"]["annotations"]});
    let spec = json!({"template": {"metadata": metadata, "spec": go["spec"]}});
    cluster.apply(&json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "report", "namespace": namespace}, "spec": spec,
    }));
    let pod = cluster.pods_of(namespace, "app=report", 1).remove(0);
    assert_eq!(pod.init_containers(), ["setup", SIDECAR], "{}", pod.pod);
    assert_eq!(items(&pod.pod["spec"]["containers"]).map(name).collect::<Vec<_>>(), ["app"]);
    let sidecar = pod.container(SIDECAR);
    assert_eq!(
        (&sidecar["restartPolicy"], &pod.pod["spec"]["shareProcessNamespace"]),
        (&json!("Always"), &json!(true))
    );
    assert_eq!(pod.variable(SIDECAR, "OTEL_SERVICE_NAME"), "report");
    // A copy of the pod is injected already.
    let mut copy = go.clone();
    copy["metadata"]["name"] = "copy".into();
    copy["spec"] = pod.pod["spec"].clone();
    assert_eq!(cluster.dry_run(namespace, &copy).init_containers(), ["setup", SIDECAR]);
}

/// The user of added containers is accepted where the namespace enforces `restricted`.
pub fn must_not_run_as_root(cluster: &Cluster) {
    let namespace = "not-as-root";
    cluster.instrumented_namespace(namespace);
    let annotate = |annotation: &str| {
        let ran = cluster.plane.kubectl(&["annotate", "--overwrite", "namespace", namespace, annotation]);
        assert!(ran.ok, "{}", ran.stderr);
    };
    let label = "pod-security.kubernetes.io/enforce=restricted";
    let ran = cluster.plane.kubectl(&["label", "namespace", namespace, label]);
    assert!(ran.ok, "{}", ran.stderr);
    let mut pod = java("hardened");
    pod["spec"]["securityContext"] =
        json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    pod["spec"]["containers"][0]["securityContext"] =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    let user = |pod: &Created| -> Value { pod.container(AGENT)["securityContext"]["runAsUser"].clone() };
    let created = cluster.create(namespace, &pod);
    assert_eq!(user(&created), 65532, "{}", created.pod);
    assert_eq!(created.pod["spec"]["securityContext"], pod["spec"]["securityContext"]);
    annotate("openshift.io/sa.scc.uid-range=1000650000/10000");
    pod["metadata"]["name"] = "in-range".into();
    let created =
        cluster.create_when("the range is known", namespace, &pod, |pod| user(pod) == 1_000_650_000);
    assert_eq!(user(&created), 1_000_650_000);
}
