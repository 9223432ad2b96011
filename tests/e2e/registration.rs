//! What an administrator applies: the manifests, with the address of a
//! webhook that runs next to the API server instead of in the cluster.

use std::path::PathBuf;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use otel_webhook_testkit::{
    cluster::{control_plane::ControlPlane, manifests::instrumentation},
    until::until,
};
use serde_json::{Value, json};

use crate::webhook::Webhook;

pub const CRD: &str = include_str!("../../manifests/crd/crd.yaml");
pub const ROLES: &str = include_str!("../../manifests/rbac/rbac.yaml");
pub const REGISTRATION: &str = include_str!("../../manifests/webhook/webhook.yaml");

/// The namespace of the product's own pods, which is not sent to the webhook.
pub const HOME: &str = "otel-webhook";

/// The label by which a registration leaves a pod out.
pub const LABEL: &str = "left-out-by-registration";

/// The label of pods that only other webhooks are to see.
pub const ELSEWHERE: &str = "reviewed-elsewhere";

/// What the registrations of Instrumentations are called here.
const OF_A_NAMESPACE: &str = "otel-webhook-of-a-namespace";

/// The webhook that warns of workloads.
const WORKLOADS: &str = "workloads.otel-webhook.io";

/// The webhook's own account.
pub const ACCOUNT: &str = "system:serviceaccount:otel-webhook:otel-webhook";
/// Installs the CRD, and the service account with its roles. Gives a
/// kubeconfig for that account.
pub fn install(plane: &ControlPlane) -> PathBuf {
    plane.install_crd();
    plane.namespace(HOME, json!({}));
    plane.apply_server_side(ROLES);
    // The API server learns of roles by a watch.
    until("the roles are in effect", || {
        let can = ["auth", "can-i", "watch", "instrumentations.opentelemetry.io", "--all-namespaces"];
        plane.kubectl(&[&can[..], &["--as", ACCOUNT]].concat()).ok.then_some(())
    });
    plane.kubeconfig_of(HOME, "otel-webhook")
}

/// Sends pods to `url`, whose certificate has to be of one of these authorities.
///
/// All but the pods that bear the number of the registration as a label: an API
/// server learns of registrations by a watch, and when those come back without
/// an agent, this one is in effect.
pub fn register(plane: &ControlPlane, url: &str, authorities: &[&str], number: u32) {
    let [mut registration, _] = registrations();
    let webhooks = registration["webhooks"].as_array_mut().expect("webhooks");
    // Instrumentations are sent by those cases alone that are about them.
    webhooks.truncate(1);
    let webhook = &mut webhooks[0];
    webhook["clientConfig"] = json!({"url": url, "caBundle": BASE64_STANDARD.encode(authorities.concat())});
    let others = json!({"key": LABEL, "operator": "NotIn", "values": [number.to_string()]});
    let here = json!({"key": ELSEWHERE, "operator": "DoesNotExist"});
    webhook["objectSelector"] = json!({"matchExpressions": [others, here]});
    plane.apply_server_side(&registration.to_string());
}

/// Sends the Instrumentations of one namespace to `webhook`, until the guard is dropped.
pub fn register_instrumentations<'p>(
    plane: &'p ControlPlane,
    webhook: &Webhook,
    namespace: &str,
) -> Registered<'p> {
    let [mut defaults, mut validation] = registrations();
    defaults["webhooks"].as_array_mut().expect("webhooks").remove(0);
    let hooks = validation["webhooks"].as_array_mut().expect("webhooks");
    hooks.retain(|hook| hook["name"] != WORKLOADS);
    let guard = Registered(plane);
    for registration in [defaults, validation] {
        register_one(plane, webhook, registration, namespace);
    }
    // The API server learns of both by watches; this is a mistake that no schema knows.
    let two = json!({"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "a", "key": "b"}});
    let probe = instrumentation(namespace, "probe", &json!({"env": [{"name": "A", "valueFrom": two}]}));
    until("the registration is in effect", || {
        let ran = plane.kubectl_in(&["create", "--dry-run=server", "--filename", "-"], &probe.to_string());
        (!ran.ok && ran.stderr.contains("Warning: spec.env[0].valueFrom")).then_some(())
    });
    guard
}

/// Sends the workloads of one namespace to `webhook`, until the guard is dropped.
pub fn register_workloads<'p>(plane: &'p ControlPlane, webhook: &Webhook, namespace: &str) -> Registered<'p> {
    let [_, mut validation] = registrations();
    let hooks = validation["webhooks"].as_array_mut().expect("webhooks");
    hooks.retain(|hook| hook["name"] == WORKLOADS);
    let guard = Registered(plane);
    register_one(plane, webhook, validation, namespace);
    guard
}

/// Registers the webhooks of a configuration for one namespace.
fn register_one(plane: &ControlPlane, webhook: &Webhook, mut registration: Value, namespace: &str) {
    registration["metadata"]["name"] = OF_A_NAMESPACE.into();
    for hook in registration["webhooks"].as_array_mut().expect("webhooks") {
        let path = hook["clientConfig"]["service"]["path"].take();
        hook["clientConfig"] = json!({
            "url": webhook.url_of(path.as_str().expect("a path")),
            "caBundle": BASE64_STANDARD.encode(webhook.authority()),
        });
        hook["namespaceSelector"] = json!({"matchLabels": {"case": namespace}});
    }
    plane.apply_server_side(&registration.to_string());
}

/// Nothing of the namespace is sent any more when this is dropped.
pub struct Registered<'p>(&'p ControlPlane);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
            self.0.kubectl(&["delete", kind, OF_A_NAMESPACE, "--ignore-not-found"]);
        }
    }
}

/// The registration of pods with that of defaults, and that of verdicts.
fn registrations() -> [Value; 2] {
    let documents: Vec<Value> = serde_saphyr::from_multiple(REGISTRATION).expect("YAML");
    documents.try_into().expect("two documents")
}

/// Stores an object that today's CRD refuses, as one of yesterday may have let it in.
pub fn apply_unchecked(plane: &ControlPlane, object: &Value) {
    let mut lax: Value = serde_saphyr::from_str(CRD).expect("YAML");
    lax["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    plane.apply_server_side(&lax.to_string());
    let args = ["apply", "--server-side", "--force-conflicts", "--validate=false", "--filename", "-"];
    until("a bad object is stored", || plane.kubectl_in(&args, &object.to_string()).ok.then_some(()));
    plane.apply_server_side(CRD);
    let mut copy = object.clone();
    copy["metadata"]["name"] = "copy".into();
    let args = ["create", "--dry-run=server", "--validate=false", "--filename", "-"];
    until("the CRD is strict again", || (!plane.kubectl_in(&args, &copy.to_string()).ok).then_some(()));
}
