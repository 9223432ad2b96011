//! What an administrator applies: the manifests, with the address of a
//! webhook that runs beside the API server instead of in the cluster.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, until};

pub const CRD: &str = include_str!("../../manifests/crd.yaml");
pub const ROLES: &str = include_str!("../../manifests/rbac.yaml");
pub const REGISTRATION: &str = include_str!("../../manifests/webhook.yaml");

/// The namespace of the product's own pods, which is not sent to the webhook.
pub const HOME: &str = "otel-webhook";

/// The label by which a registration leaves a pod out.
pub const LABEL: &str = "left-out-by-registration";

const ACCOUNT: &str = "system:serviceaccount:otel-webhook:otel-webhook";
const LIMIT: Duration = Duration::from_secs(60);

/// Installs the CRD, and the service account with its roles. Gives a
/// kubeconfig for that account.
pub fn install(plane: &ControlPlane) -> PathBuf {
    apply(plane, CRD);
    until("the CRD is served", LIMIT, || {
        plane.kubectl(&["get", "instrumentations.opentelemetry.io"]).ok.then_some(())
    });
    apply(plane, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}).to_string());
    apply(plane, ROLES);
    // The API server learns of roles by a watch.
    until("the roles are in effect", LIMIT, || {
        let can = ["auth", "can-i", "watch", "instrumentations.opentelemetry.io", "--all-namespaces"];
        plane.kubectl(&[&can[..], &["--as", ACCOUNT]].concat()).ok.then_some(())
    });
    write_kubeconfig(plane)
}

/// Sends pods to `url`, whose certificate has to be of one of these authorities.
///
/// All but the pods that bear the number of the registration as a label: an API
/// server learns of registrations by a watch, and when those come back without
/// an agent, this one is in effect.
pub fn register(plane: &ControlPlane, url: &str, authorities: &[&str], number: u32) {
    let mut registration: Value = serde_saphyr::from_str(REGISTRATION).expect("YAML");
    let webhook = &mut registration["webhooks"][0];
    webhook["clientConfig"] = json!({"url": url, "caBundle": BASE64_STANDARD.encode(authorities.concat())});
    let others = json!({"key": LABEL, "operator": "NotIn", "values": [number.to_string()]});
    webhook["objectSelector"] = json!({"matchExpressions": [others]});
    apply(plane, &registration.to_string());
}

/// Creates objects or changes them, by server-side apply: it does not mind
/// when a controller creates the same object at the same time.
pub fn apply(plane: &ControlPlane, manifests: &str) {
    let args = ["apply", "--server-side", "--force-conflicts", "--filename", "-"];
    let ran = plane.kubectl_in(&args, manifests);
    assert!(ran.ok, "kubectl apply failed: {}", ran.stderr);
}

fn write_kubeconfig(plane: &ControlPlane) -> PathBuf {
    let token = plane.kubectl(&["create", "token", "otel-webhook", "--namespace", HOME, "--duration=2h"]);
    assert!(token.ok, "no token: {}", token.stderr);
    let admin = fs::read_to_string(plane.kubeconfig()).expect("the administrator's kubeconfig");
    let mut config: Value = serde_json::from_str(&admin).expect("JSON");
    config["users"][0]["user"] = json!({"token": token.stdout.trim()});
    let path = plane.dir().join("otel-webhook.kubeconfig");
    fs::write(&path, config.to_string()).expect("the scratch folder is writable");
    path
}
