//! The policy of restarts: with the token of the controller, only two annotations of a workload can be changed.

use otel_webhook_testkit::{
    cluster::control_plane::{ControlPlane, Ran},
    objects::items,
    until::until,
};
use serde_json::{Value, json};

use crate::{cluster::Cluster, controller::ACCOUNT, program::printed, registration::HOME};

/// The name of the policy and of the roles that it restricts.
const NAME: &str = "otel-webhook-controller-restarts";

/// One with the same roles that the policy is not about.
const OTHER: &str = "system:serviceaccount:otel-webhook:other";

const KINDS: [(&str, &str); 3] =
    [("deployments", "Deployment"), ("statefulsets", "StatefulSet"), ("daemonsets", "DaemonSet")];

const REJECTED: &str = include_str!("../restart-policy.yaml");

const CONFIG: &str = "otel-webhook/config";
const RECORD: &str = "otel-webhook/restarted";

/// How its message begins; what was changed follows.
const DENIED: &str = "denied request: the controller of otel-webhook may change only the annotations \
    otel-webhook/restarted and, in the pod template, otel-webhook/config, not ";

pub fn two_annotations_alone(_: &Cluster) {
    let plane = &ControlPlane::start();
    install(plane);
    for (resource, kind) in KINDS {
        let annotations = json!({"example.com/kept": "yes", "example.com/changed": "no"});
        plane.apply(&workload(kind, "app", &annotations).to_string());
        let patch_of = |name: &str, account: &str, patch: &Value| {
            plane.kubectl(&["patch", resource, name, "--as", account, "--patch", &patch.to_string()])
        };
        let patch = |account: &str, patch: &Value| patch_of("app", account, patch);
        let mut values = 0..;
        until("the API server has the policy", || {
            // Another value each time: what a patch allowed before leaves as it is, no policy denies.
            let value = format!("attempt-{}", values.next()?);
            let ran = patch(ACCOUNT, &json!({"metadata": {"labels": {"by": value}}}));
            changed(&ran).map(drop)
        });

        // Added, changed, and removed.
        for value in [json!("one"), json!("two"), json!(null)] {
            let ran = patch(ACCOUNT, &restart(&value));
            assert!(ran.ok, "{kind} {value}: {}", ran.stderr);
            let stored = plane.get("default", &[resource, "app"]);
            let template = &stored["spec"]["template"]["metadata"]["annotations"];
            assert_eq!((&template[CONFIG], &stored["metadata"]["annotations"][RECORD]), (&value, &value));
        }
        plane.apply(&workload(kind, "plain", &Value::Null).to_string());
        let ran = patch_of("plain", ACCOUNT, &restart(&json!("one")));
        assert!(ran.ok, "{kind} without annotations: {}", ran.stderr);

        let before = plane.get("default", &[resource, "app"]);
        for (change, field) in rejected(kind) {
            let ran = patch(ACCOUNT, &change);
            assert!(!ran.ok, "{kind}: {change} is accepted");
            assert_eq!(changed(&ran), Some(&*field), "{kind}: {change}: {}", ran.stderr);
        }
        assert_eq!(plane.get("default", &[resource, "app"])["spec"], before["spec"]);
        for (change, _) in rejected(kind) {
            let ran = patch(OTHER, &change);
            assert!(ran.ok, "{kind} {change} by another account: {}", ran.stderr);
        }
        field_managers_remain(plane, resource, &workload(kind, "applied", &Value::Null));
        // The policy is about updates, so nothing else may be granted.
        let made = workload(kind, "made", &Value::Null).to_string();
        let ran = plane.kubectl_in(&["apply", "--server-side", "--as", ACCOUNT, "--filename", "-"], &made);
        assert!(!ran.ok && ran.stderr.contains("Forbidden"), "{kind}: {}", ran.stderr);
    }
    let scaled = ["patch", "deployments", "app", "--subresource=scale", "--as", ACCOUNT, "--patch"];
    let ran = plane.kubectl(&[&scaled[..], &[r#"{"spec":{"replicas":5}}"#]].concat());
    assert!(!ran.ok && ran.stderr.contains("Forbidden"), "{}", ran.stderr);
    type_checked(plane);
}

/// The roles and the policy that the program prints.
fn install(plane: &ControlPlane) {
    plane.namespace(HOME, json!({}));
    plane.apply(&printed(&["rbac", "--controller", "--restarts"]));
    let role = format!("--clusterrole={NAME}");
    plane.run_kubectl(&["create", "clusterrolebinding", "other", &role, "--user", OTHER]);
    for account in [ACCOUNT, OTHER] {
        until("the roles are in effect", || {
            plane.kubectl(&["auth", "can-i", "patch", "daemonsets.apps", "--as", account]).ok.then_some(())
        });
    }
}

/// Field managers that apply, such as GitOps tools, are not removed, together or one by one.
fn field_managers_remain(plane: &ControlPlane, resource: &str, workload: &Value) {
    plane.apply_server_side(&workload.to_string());
    let name = workload["metadata"]["name"].as_str().expect("a name");
    let patch = |patch: &Value| {
        plane.kubectl(&[
            "patch",
            resource,
            name,
            "--type=merge",
            "--as",
            ACCOUNT,
            "--patch",
            &patch.to_string(),
        ])
    };
    let managers = || {
        let args = [resource, name, "--show-managed-fields"];
        items(&plane.get("default", &args)["metadata"]["managedFields"]).cloned().collect::<Vec<_>>()
    };
    let ran = patch(&restart(&json!("one")));
    assert!(ran.ok, "{resource}: {}", ran.stderr);
    let before = managers();
    let is_applying = |manager: &Value| manager["operation"] == "Apply";
    let others: Vec<_> = before.iter().filter(|manager| !is_applying(manager)).cloned().collect();
    assert!(!others.is_empty() && others.len() < before.len(), "{resource}: {before:?}");
    for removed in [json!([{}]), json!([]), json!(others)] {
        let ran = patch(&json!({"metadata": {"managedFields": removed}}));
        let is_denied = !ran.ok && ran.stderr.contains("may not remove field managers");
        // An empty list is no change for some API servers.
        assert!(is_denied || managers().iter().any(is_applying), "{resource} {removed}: {}", ran.stderr);
        assert!(is_denied || removed == json!([]), "{resource} {removed}: {}", ran.stderr);
    }
    let applying =
        |managers: &[Value]| managers.iter().filter(|one| is_applying(one)).cloned().collect::<Vec<_>>();
    assert_eq!(applying(&managers()), applying(&before), "{resource}");
}

/// Each field of the policy exists, in all of the three kinds.
fn type_checked(plane: &ControlPlane) {
    let policy = until("the policy is type-checked", || {
        let policy = plane.get("default", &["validatingadmissionpolicy", NAME]);
        (policy["status"]["observedGeneration"] == policy["metadata"]["generation"]).then_some(policy)
    });
    assert!(policy["status"]["typeChecking"]["expressionWarnings"].is_null(), "{}", policy["status"]);
}

/// What was changed, as the message of the policy says it; none without that message.
fn changed(ran: &Ran) -> Option<&str> {
    ran.stderr.trim_end().split_once(DENIED).map(|(_, fields)| fields)
}

fn restart(value: &Value) -> Value {
    json!({"metadata": {"annotations": {(RECORD): value}},
        "spec": {"template": {"metadata": {"annotations": {(CONFIG): value}}}}})
}

/// Patches of anything else, each with the field that the message names.
fn rejected(kind: &str) -> Vec<(Value, String)> {
    let rows: Vec<Value> = serde_saphyr::from_str(REJECTED).expect("YAML");
    let is_of = |row: &&Value| row["of"].is_null() || items(&row["of"]).any(|one| one == kind);
    let row = |row: &Value| (row["patch"].clone(), row["field"].as_str().expect("a field").to_owned());
    rows.iter().filter(is_of).map(row).collect()
}

/// A workload with these annotations, which its template has as well. It has no pods: there is no node.
fn workload(kind: &str, name: &str, annotations: &Value) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}, "annotations": annotations},
            "spec": {
                "containers": [{"name": "app", "image": "registry.example.com/app:1"}],
                "nodeSelector": {"pool": "apps"},
            },
        },
    });
    if kind != "DaemonSet" {
        spec["replicas"] = 0.into();
    }
    let labels = json!({"app": name});
    let metadata =
        json!({"name": name, "namespace": "default", "labels": labels, "annotations": annotations});
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec})
}
