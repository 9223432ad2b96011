//! The controller of the manifests, as `check` finds it: without a kubelet, its pods become ready by hand.

use otel_webhook_testkit::{cluster::control_plane::ControlPlane, until::until};
use serde_json::json;

use super::{check, until_found};
use crate::{
    cluster::LIMIT,
    registration::{HOME, apply},
};

const MANIFEST: &str = include_str!("../../../../manifests/controller/controller.yaml");

/// Not ready, ready, and without a role.
pub fn states(plane: &ControlPlane) {
    assert!(check(plane, &[]).codes().contains(&"NoController"));
    apply(plane, MANIFEST);
    let said = until_found(plane, "ControllerNotReady", 0);
    assert!(said.contains("is ready: it reports nothing"), "{said}");
    let pods = until("both pods are there", LIMIT, || {
        let args = ["get", "pods", "-n", HOME, "-l", "app.kubernetes.io/component=controller", "-o", "name"];
        let found: Vec<String> = plane.kubectl(&args).stdout.lines().map(str::to_owned).collect();
        (found.len() == 2).then_some(found)
    });

    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}).to_string();
    let patch = ["patch", &pods[0], "-n", HOME, "--subresource=status", "--patch", &status];
    assert!(plane.kubectl(&patch).ok);
    let said = until_found(plane, "ControllerReady", 0);
    assert!(said.contains("1 of 2 pods of the controller are ready"), "{said}");
    let checked = check(plane, &[]);
    assert!(!checked.codes().contains(&"ControllerPermissionMissing"), "{checked:?}");

    assert!(plane.kubectl(&["delete", "clusterrolebinding", "otel-webhook-controller"]).ok);
    let said = until_found(plane, "ControllerPermissionMissing", 0);
    assert!(said.contains("otel-webhook rbac --controller"), "{said}");
    apply(plane, MANIFEST);
    until("its permissions are back", LIMIT, || {
        (!check(plane, &[]).codes().contains(&"ControllerPermissionMissing")).then_some(())
    });
}
