//! Nodes that come and go decide whether the images of agents are mounted.

use otel_webhook_testkit::{cluster::control_plane::ControlPlane, until::until};
use serde_json::{Value, json};

use crate::audit;
use crate::cluster::{Cluster, asking};
use crate::program::printed;

/// In its own cluster, with the roles that the program prints.
pub fn join_and_leave(_: &Cluster) {
    let cluster = Cluster::without_controllers();
    cluster.plane.apply_server_side(&printed(&["rbac", "--watch-nodes"]));
    cluster.instrumented_namespace("pools");
    let _auto = cluster.webhook.restart_with(&["--delivery", "auto"]);
    let mut pod = asking("p", &[("inject-nodejs", "true")]);
    let told = |pod: &Value, what: &str| {
        until(what, || {
            let created = cluster.dry_run("pools", pod);
            created.status().contains(what).then_some(created)
        })
    };
    let mounted = "\"delivery\":\"imageVolume\"";
    told(&pod, "no present node matches");

    node(&cluster.plane, "new", "v1.36.1", "containerd://2.2.1");
    let created = told(&pod, mounted);
    assert!(created.init_containers().is_empty(), "{}", created.pod);
    node(&cluster.plane, "old", "v1.36.1", "containerd://2.1.4");
    let created = told(&pod, "the container runtime is containerd://2.1.4");
    assert_eq!(created.init_containers(), ["opentelemetry-auto-instrumentation-nodejs"]);
    told(&asking("j", &[("inject-java", "true")]), mounted);

    let mut chosen = pod.clone();
    chosen["metadata"]["annotations"]["otel-webhook/delivery"] = "imageVolume".into();
    let created = told(&chosen, "ImageVolumeNotSupported");
    assert!(created.init_containers().is_empty(), "{}", created.pod);
    let warned = "the pod may not start: on node \"old\" the container runtime is containerd://2.1.4";
    assert!(created.warnings.contains(warned), "{}", created.warnings);

    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "new"});
    told(&pod, mounted);
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "old"});
    told(&pod, "the container runtime is containerd://2.1.4");
    cluster.run(&["delete", "node", "old"]);
    told(&pod, "no present node matches");
    pod["spec"]["nodeSelector"] = Value::Null;
    told(&pod, mounted);

    let asked = audit::asked(&cluster, audit::ACCOUNT);
    for verb in ["list nodes", "watch nodes"] {
        assert!(asked.contains(verb), "{asked:?}");
    }
}

/// Registers a node, as its kubelet does.
pub fn node(plane: &ControlPlane, name: &str, kubelet: &str, runtime: &str) {
    let info = json!({
        "kubeletVersion": kubelet, "containerRuntimeVersion": runtime, "architecture": "amd64", "bootID": "",
        "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "operatingSystem": "linux", "osImage": "",
        "systemUUID": "",
    });
    let labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"});
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"nodeInfo": info},
    });
    let ran = plane.kubectl_in(&["create", "--filename", "-"], &node.to_string());
    assert!(ran.ok, "{}", ran.stderr);
}
