//! An installation as the manifests have it, without a kubelet that would run it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use otel_webhook_server::tls::SelfSigned;
use otel_webhook_testkit::{
    cluster::{control_plane::ControlPlane, manifests::deployment},
    until::until,
};
use serde_json::{Value, json};

use crate::registration::{self, HOME};

/// Name of both configurations.
pub const CONFIGURATION: &str = "otel-webhook";

/// The name that the API server calls.
pub const NAME: &str = "otel-webhook.otel-webhook.svc";

/// The Secret of the committed Deployment.
pub const SECRET: &str = "otel-webhook-certificates";

const MANAGED_ROLES: &str = include_str!("../../../../manifests/managed/rbac.yaml");
const DEPLOYMENT: &str = include_str!("../../../../manifests/managed/deployment.yaml");
const SERVICE: &str = include_str!("../../../../manifests/server/service.yaml");

/// An installation, and the certificate that it has.
pub struct Home {
    pub pair: SelfSigned,
}

impl Home {
    /// Applies the manifests, and does what a kubelet would bring about.
    pub fn install(plane: &ControlPlane) -> Self {
        registration::install(plane);
        for manifest in [MANAGED_ROLES, SERVICE, DEPLOYMENT] {
            plane.apply_server_side(manifest);
        }
        let home = Self { pair: SelfSigned::generate(&[NAME]).expect("a pair") };
        Self::serve(plane, &home.pair);
        until("the Deployment's pods are there", || (pods(plane) == 2).then_some(()));
        Self::set_ready(plane, true);
        // Before the registration, since nobody would answer.
        plane.namespace("shop", json!({}));
        plane.instrumentation("shop", "default", &json!({}));
        // For pods that name it.
        let source = json!({"secretKeyRef": {"name": "agent-token", "key": "token"}});
        let spec = json!({
            "selector": {"matchLabels": {"by": "name"}}, "env": [{"name": "TOKEN", "valueFrom": source}],
        });
        plane.instrumentation("shop", "by-secret", &spec);
        plane.apply_server_side(&deployment("shop", "order", 1).to_string());
        until("a pod that asks is there", || {
            let args = ["get", "pods", "-n", "shop", "-l", "app=order", "-o", "name"];
            (!plane.kubectl(&args).stdout.is_empty()).then_some(())
        });
        home.register(plane, |_| ());
        home
    }

    /// Registers the Service, with changes to the webhook for pods. That comes last, since
    /// a check that waits ends with it.
    pub fn register(&self, plane: &ControlPlane, change: impl FnOnce(&mut Value)) {
        let [mutating, validating] = self.configurations(CONFIGURATION, change);
        plane.apply_server_side(&validating.to_string());
        plane.apply_server_side(&mutating.to_string());
    }

    /// Registers it for pods once more, under another name.
    pub fn register_as(&self, plane: &ControlPlane, name: &str, change: impl FnOnce(&mut Value)) {
        let [mut mutating, _] = self.configurations(name, change);
        mutating["webhooks"].as_array_mut().expect("webhooks").truncate(1);
        plane.apply_server_side(&mutating.to_string());
    }

    fn configurations(&self, name: &str, change: impl FnOnce(&mut Value)) -> [Value; 2] {
        let mut configurations: [Value; 2] = serde_saphyr::from_multiple(registration::REGISTRATION)
            .expect("YAML")
            .try_into()
            .expect("two documents");
        for configuration in &mut configurations {
            configuration["metadata"]["name"] = name.into();
            for webhook in configuration["webhooks"].as_array_mut().expect("webhooks") {
                webhook["clientConfig"]["caBundle"] = json!(BASE64_STANDARD.encode(&self.pair.ca_pem));
                // Workloads that the test makes are not to wait for an answer that never comes.
                webhook["timeoutSeconds"] = json!(1);
            }
        }
        change(&mut configurations[0]["webhooks"][0]);
        configurations
    }

    /// Puts a certificate into the Secret.
    pub fn serve(plane: &ControlPlane, pair: &SelfSigned) {
        let encode = |text: &str| BASE64_STANDARD.encode(text);
        let data = json!({"tls.crt": encode(&pair.certificate_pem), "tls.key": encode(&pair.key_pem)});
        let metadata = json!({"name": SECRET, "namespace": HOME});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": metadata, "data": data});
        plane.apply_server_side(&secret.to_string());
    }

    /// Lists an address of the webhook, ready or not. The controller lists only pods of nodes that are there.
    pub fn set_ready(plane: &ControlPlane, ready: bool) {
        let metadata = json!({"name": "otel-webhook-test", "namespace": HOME,
            "labels": {"kubernetes.io/service-name": "otel-webhook"}});
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata,
            "addressType": "IPv4", "ports": [{"name": "https", "port": 9443, "protocol": "TCP"}],
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}]});
        plane.apply_server_side(&slice.to_string());
    }
}

fn pods(plane: &ControlPlane) -> usize {
    let args = ["get", "pods", "-n", HOME, "-l", "app.kubernetes.io/component=webhook", "-o", "name"];
    plane.kubectl(&args).stdout.lines().count()
}
