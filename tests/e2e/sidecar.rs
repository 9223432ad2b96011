//! Somebody else's webhook, called after ours: it adds a sidecar to each pod,
//! so that the API server calls ours again.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use otel_webhook_server::tls::{self, CurrentCertificate};
use otel_webhook_server::{Listening, Shutdown, Transport};
use otel_webhook_telemetry::Metrics;
use otel_webhook_testkit::{objects::items, until::until};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::cluster::{Cluster, asking};
use crate::webhook::pair;

/// The name of the container that it adds.
pub const NAME: &str = "sidecar";

/// Webhooks are called in the order of these names.
const CONFIGURATION: &str = "zz-after-otel-webhook";

/// The webhook, and its registration for one namespace, as long as it lives.
pub struct SidecarWebhook<'c> {
    cluster: &'c Cluster,
    shutdown: Shutdown,
    /// Dropped last, with the server in it.
    _runtime: Runtime,
}

impl<'c> SidecarWebhook<'c> {
    /// Serves and registers it, and waits until it has its way in the namespace.
    pub fn start(cluster: &'c Cluster, namespace: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let shutdown = Shutdown::new();
        let (address, authority) = serve(&runtime, &shutdown);
        let webhook = Self { cluster, shutdown, _runtime: runtime };
        cluster.apply(&configuration(address, &authority, namespace));
        until("the second webhook is in effect", || {
            let probe = cluster.dry_run(namespace, &asking("probe", &[]));
            has_sidecar(&probe.pod).then_some(())
        });
        webhook
    }
}

impl Drop for SidecarWebhook<'_> {
    fn drop(&mut self) {
        let kind = "mutatingwebhookconfiguration";
        self.cluster.plane.kubectl(&["delete", kind, CONFIGURATION, "--ignore-not-found"]);
        self.shutdown.stop();
    }
}

/// Whether a pod has the container.
pub fn has_sidecar(pod: &Value) -> bool {
    items(&pod["spec"]["containers"]).any(|container| container["name"] == NAME)
}

/// Gives the address, and the authority of the certificate there.
fn serve(runtime: &Runtime, shutdown: &Shutdown) -> (SocketAddr, String) {
    // Ports are opened within a runtime.
    let _entered = runtime.enter();
    let pair = pair();
    let metrics = Arc::new(Metrics::new());
    let serving = pair.serving().expect("a pair that can be served");
    let current = CurrentCertificate::new(serving, Arc::clone(&metrics));
    let config = tls::server_config(Arc::new(current)).expect("a configuration");
    let transport = Transport::Tls { config: Arc::new(config), metrics };
    let router = Router::new().route("/", post(add_sidecar));
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listening = Listening::bind("sidecars", any).expect("a port");
    let address = listening.address;
    runtime.spawn(listening.serve(router, transport, shutdown.phases(), Duration::ZERO));
    (address, pair.ca_pem)
}

async fn add_sidecar(body: Bytes) -> impl IntoResponse {
    let review: Value = serde_json::from_slice(&body).expect("a review");
    let request = &review["request"];
    let mut response = json!({"uid": request["uid"], "allowed": true});
    if !has_sidecar(&request["object"]) {
        let sidecar = json!({"name": NAME, "image": "registry.example.com/mesh:1"});
        let patch = json!([{"op": "add", "path": "/spec/containers/-", "value": sidecar}]);
        response["patchType"] = "JSONPatch".into();
        response["patch"] = BASE64_STANDARD.encode(patch.to_string()).into();
    }
    let answer =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    ([(CONTENT_TYPE, "application/json")], answer.to_string())
}

fn configuration(address: SocketAddr, authority: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION},
        "webhooks": [{
            "name": "sidecar.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": {
                "url": format!("https://{address}/"), "caBundle": BASE64_STANDARD.encode(authority),
            },
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
            }],
            "namespaceSelector": {"matchLabels": {"case": namespace}},
        }],
    })
}
