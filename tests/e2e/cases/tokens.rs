//! Generated pods with tokens of ServiceAccounts on the real API server: the pod is the same whether its
//! added containers come with the token or get it from the API server (D31). The model of its plugin, with which
//! more pods are tried in `crates/inject/tests`, is compared as well. All by dry runs.

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DynamicObject, PostParams},
    core::ApiResource,
};
use otel_webhook::store::Writer;
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_testkit::{
    generated::{choices::how_many, pods::NAMESPACE, tokens::with_tokens},
    models::service_account::{TOKEN_VOLUME, mounted, without_added_tokens},
    objects::{compare, items},
    runner::note,
    surroundings::review,
};
use serde_json::{Value, json};

use crate::cases::generated::client;
use crate::cluster::Cluster;
use crate::registration::HOME;

/// How many pods are tried unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const PODS: u64 = 400;

/// More only wait for each other on two cores.
const IN_FLIGHT: usize = 8;

/// What came of a pod.
#[derive(PartialEq, Eq)]
enum Fate {
    Rejected,
    NotInjected,
    /// Whether the API server left it as the webhook made it.
    Injected {
        is_final: bool,
    },
}

pub fn same_pod(cluster: &Cluster) {
    // The registration leaves this namespace out, so each pod comes as it was sent.
    cluster.namespace(HOME, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let fates: Vec<Fate> = runtime.block_on(async {
        let client = client(cluster.plane.kubeconfig()).await;
        let pods = Api::namespaced_with(client, HOME, &ApiResource::erase::<Pod>(&()));
        let tried = stream::iter(0..how_many(PODS)).map(|seed| try_pod(&pods, seed));
        tried.buffer_unordered(IN_FLIGHT).collect().await
    });
    let count = |wanted: &Fate| fates.iter().filter(|fate| *fate == wanted).count();
    let (last, not_last) = (Fate::Injected { is_final: true }, Fate::Injected { is_final: false });
    let counts = [&last, &not_last, &Fate::NotInjected, &Fate::Rejected].map(count);
    let [unchanged, changed, not_injected, rejected] = counts;
    note(&format!(
        "{} generated pods: {unchanged} injected and not changed afterwards, {changed} changed, \
         {not_injected} not injected, {rejected} rejected",
        fates.len()
    ));
    // A generator whose pods nobody takes proves nothing.
    assert!(unchanged * 4 >= fates.len() && changed > 0 && rejected * 2 <= fates.len());
}

async fn try_pod(pods: &Api<DynamicObject>, seed: u64) -> Fate {
    let generated = with_tokens(seed);
    let Ok(sent) = dry_run(pods, &generated.pod).await else { return Fate::Rejected };
    let suffix = volumes(&sent).find_map(|name| name.strip_prefix(TOKEN_VOLUME)).unwrap_or_default();
    assert_same(seed, "the model's first call", &tokens(&mounted(&generated.pod, suffix)), &tokens(&sent));
    let mut writer = Writer::new(DefaultImages::default());
    writer.put(&generated.instrumentation);
    writer.publish();
    let snapshot = writer.store().snapshot();
    let outcome = review(&snapshot.catalogue, &snapshot.owners, NAMESPACE, &sent);
    if !outcome.findings.iter().any(|finding| finding.reason.is_injected()) {
        return Fate::NotInjected;
    }
    let mut after = sent.clone();
    json_patch::patch(&mut after, &outcome.patch.operations()).expect("the patch applies");

    let one = dry_run(pods, &after).await.expect("it is accepted injected");
    let two =
        dry_run(pods, &without_added_tokens(&sent, &after)).await.expect("it is accepted without the token");

    let is_final = tokens(&one) == tokens(&after);
    let is_final_by_model = mounted(&after, "again") == after;
    assert_eq!(is_final, is_final_by_model, "pod {seed}: the model's second call\n{}", after["spec"]);
    // A volume that the plugin makes has another name each time.
    if is_final {
        assert_same(seed, "with one review and with two", &one["spec"], &two["spec"]);
    }
    Fate::Injected { is_final }
}

fn assert_same(seed: u64, what: &str, one: &Value, other: &Value) {
    let differences = compare("", one, other);
    assert!(differences.is_empty(), "pod {seed}: {what}:\n{}", differences.join("\n"));
}

/// What the plugin changes: the names of volumes, and the mounts of each container.
fn tokens(pod: &Value) -> Value {
    let mounts = ["initContainers", "containers"].map(|list| {
        let all = items(&pod["spec"][list]);
        all.map(|container| items(&container["volumeMounts"]).cloned().collect()).collect::<Vec<Value>>()
    });
    json!({"volumes": volumes(pod).collect::<Vec<_>>(), "mounts": mounts})
}

fn volumes(pod: &Value) -> impl Iterator<Item = &str> {
    items(&pod["spec"]["volumes"]).filter_map(|volume| volume["name"].as_str())
}

async fn dry_run(pods: &Api<DynamicObject>, pod: &Value) -> Result<Value, String> {
    let sent: DynamicObject = serde_json::from_value(pod.clone()).expect("an object");
    match pods.create(&PostParams { dry_run: true, ..PostParams::default() }, &sent).await {
        Ok(made) => Ok(json!(made)),
        Err(kube::Error::Api(status)) => Err(status.message),
        Err(error) => panic!("the API server did not answer: {error}"),
    }
}
