//! Instrumentations as large as the API server stores them: the webhook starts within the memory of its container.

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

const COUNT: usize = 200;

/// How many of the largest Instrumentations that are used fit into the maximum of all.
const USED: u64 = 128;

/// In a cluster of its own, since every webhook would list them.
pub fn start_up(_: &Cluster) {
    let plane = ControlPlane::without_controllers();
    let kubeconfig = registration::install(&plane);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "large"}});
    registration::apply(&plane, &namespace.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let create = |prefix: &str, spec: Value| {
        runtime.block_on(async {
            let client = client(plane.kubeconfig()).await;
            for number in 0..COUNT {
                create(&client, &format!("{prefix}-{number}"), &spec).await;
            }
        });
    };
    create("largest", json!({"env": [{"name": "A", "value": "a".repeat(LARGEST)}]}));
    let webhook = Webhook::start(&kubeconfig, plane.dir());
    judge(&webhook, COUNT as u64, COUNT as u64);

    // Many small entries have many times the size of their JSON in memory.
    let entries: Vec<_> =
        (0..4_500).map(|number| json!({"name": format!("A{number}"), "value": ""})).collect();
    let size = json!({"env": entries}).to_string().len();
    assert!((120 * 1024..128 * 1024).contains(&size), "{size}");
    create("many", json!({"env": entries}));
    let _again = webhook.restart_with(&[]);
    judge(&webhook, 2 * COUNT as u64, 2 * COUNT as u64 - USED - 1);
}

fn judge(webhook: &Webhook, listed: u64, most_too_large: u64) {
    assert_eq!(webhook.metric("otel_webhook_instrumentations"), listed);
    let too_large = webhook.metric("otel_webhook_instrumentations_too_large");
    let peak = webhook.peak_memory();
    note(&format!("{listed} large Instrumentations, {too_large} not used: at most {peak} KiB of memory"));
    assert!(too_large >= COUNT as u64 && too_large <= most_too_large, "{too_large} are not used");
    assert!(peak < LIMIT, "at most {peak} KiB of memory were used, and the limit is {LIMIT} KiB");
}

async fn create(client: &Client, name: &str, spec: &Value) {
    let kind = GroupVersionKind::gvk("opentelemetry.io", "v1alpha1", "Instrumentation");
    let kind = ApiResource::from_gvk_with_plural(&kind, "instrumentations");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "large", &kind);
    let object = json!({
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec,
    });
    let sent: DynamicObject = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &sent).await.expect("the Instrumentation is stored");
}
