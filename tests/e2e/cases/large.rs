//! Instrumentations and ServiceAccounts as large as the API server stores them: the webhook starts within the memory
//! of its container.

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use otel_webhook_testkit::{cluster::control_plane::ControlPlane, runner::note};
use serde_json::{Value, json};

use crate::cases::generated::client;
use crate::cluster::Cluster;
use crate::registration;
use crate::webhook::Webhook;

/// The limit of the chart, in KiB.
const LIMIT: u64 = 128 * 1024;

/// Just below what etcd stores.
const LARGEST: usize = 1_300_000;

const COUNT: u64 = 200;

/// In a cluster of its own, since every webhook would list them.
pub fn start_up(_: &Cluster) {
    let plane = ControlPlane::without_controllers();
    let kubeconfig = registration::install(&plane);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "large"}});
    registration::apply(&plane, &namespace.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = client(plane.kubeconfig()).await;
        for number in 0..COUNT {
            create(&client, &format!("large-{number}")).await;
        }
    });
    let webhook = Webhook::start(&kubeconfig, plane.dir());
    assert_eq!(webhook.metric("otel_webhook_instrumentations"), COUNT);
    assert_eq!(webhook.metric("otel_webhook_instrumentations_too_large"), COUNT);
    let peak = webhook.peak_memory();
    note(&format!(
        "{COUNT} large Instrumentations, none of them used, and as many large ServiceAccounts: at most {peak} KiB of memory"
    ));
    assert!(peak < LIMIT, "at most {peak} KiB of memory were used, and the limit is {LIMIT} KiB");
}

async fn create(client: &Client, name: &str) {
    let long = "a".repeat(LARGEST);
    let kind = GroupVersionKind::gvk("opentelemetry.io", "v1alpha1", "Instrumentation");
    let kind = ApiResource::from_gvk_with_plural(&kind, "instrumentations");
    store(client, &kind, name, json!({"spec": {"env": [{"name": "A", "value": long}]}})).await;
    let kind = ApiResource::erase::<ServiceAccount>(&());
    store(client, &kind, name, json!({"secrets": [{"name": long}]})).await;
}

async fn store(client: &Client, kind: &ApiResource, name: &str, mut object: Value) {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "large", kind);
    object["apiVersion"] = kind.api_version.as_str().into();
    object["kind"] = kind.kind.as_str().into();
    object["metadata"] = json!({"name": name});
    let sent: DynamicObject = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &sent).await.expect("the object is stored");
}
