//! Generated workloads: what `explain` says of each is what the API server and the webhook make of its pod.

use futures::{StreamExt as _, stream};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    Api, Client, Resource,
    api::{DynamicObject, PostParams},
    core::ApiResource,
};
use otel_webhook_api::Instrumentation;
use otel_webhook_testkit::{
    generated::{choices::how_many, pods::generate},
    runner::note,
    until::until,
};
use serde_json::{Value, json};

use super::{
    explain,
    same::{pod_of, same},
};
use crate::cases::generated::client;
use crate::cluster::{Cluster, LIMIT, java};

const NAMESPACE: &str = "explained-generated";

/// How many workloads are explained; the pods of one in twenty are rejected, whatever the webhook does.
const WORKLOADS: u64 = 540;

/// More only wait for each other on two cores.
const IN_FLIGHT: usize = 8;

/// The label by which each workload has an Instrumentation of its own.
const SEED: &str = "seed";

/// What a dry run made of a pod: the name of its Deployment, the pod as it was sent, and as it came back.
type Tried = (String, Value, Result<Value, String>);

pub fn generated(_: &Cluster) {
    let cluster = &Cluster::without_controllers();
    cluster.namespace(NAMESPACE, &[("inject-sdk", "false")]);
    // A new pod gets these before the webhook sees it, a template never does.
    cluster.apply(&json!({"apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": "usual", "namespace": NAMESPACE},
        "spec": {"limits": [{"type": "Container", "default": {"memory": "2Gi"}, "defaultRequest": {"cpu": "5m"}}]}}));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let count = usize::try_from(how_many(WORKLOADS)).expect("a count");
    let client = runtime.block_on(client(cluster.plane.kubeconfig()));
    let deployments: Vec<Value> = runtime.block_on(async {
        let stored = stream::iter(0..).map(|seed| store(&client, seed)).buffer_unordered(IN_FLIGHT);
        stored.filter_map(async |stored| stored).take(count).collect().await
    });
    until_known(cluster);
    let run = explain(cluster, &["deployments", "-n", NAMESPACE]);
    // Those that were in flight when there were enough are stored as well.
    assert!(run.code == Some(0) && run.found.len() >= count, "{} of {count}: {}", run.found.len(), run.err);
    let tried: Vec<Tried> = runtime.block_on(async {
        let tried = stream::iter(&deployments).map(|deployment| dry_run(&client, deployment));
        tried.buffer_unordered(IN_FLIGHT).collect().await
    });
    let (mut differ, mut made, mut injected) = (Vec::new(), 0, 0);
    for (name, sent, result) in &tried {
        let explained = run.found.iter().find(|one| one["name"] == **name).expect("each is explained");
        let Ok(pod) = result else { continue };
        made += 1;
        injected += usize::from(explained["added"].as_array().is_some_and(|added| !added.is_empty()));
        if let Err(problem) = same(explained, sent, pod) {
            differ.push(format!("{name}: {problem}"));
        }
    }
    note(&format!(
        "{count} generated workloads are explained; {made} of their pods are accepted by a dry run, containers are \
         added to {injected}; {} differ",
        differ.len(),
    ));
    let shown = differ.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differ.is_empty(), "explain and the dry run differ for {} pods:\n{shown}", differ.len());
    assert!(made * 10 >= count * 9 && injected * 4 >= count, "too few show anything");
}

/// Stores the workload of a number and its Instrumentation, if the API server accepts them.
async fn store(client: &Client, seed: u64) -> Option<Value> {
    let mut generated = generate(seed);
    let name = format!("g-{seed}");
    let labels = &mut generated.pod["metadata"]["labels"];
    labels[SEED] = name.as_str().into();
    let template = json!({
        "metadata": {"labels": labels.take(), "annotations": generated.pod["metadata"]["annotations"].take()},
        "spec": generated.pod["spec"].take(),
    });
    let selector = json!({"matchLabels": {(SEED): name}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": selector, "template": template}});
    let mut instrumentation = generated.instrumentation;
    instrumentation["metadata"] = json!({"name": name});
    instrumentation["spec"]["selector"] = selector;
    let deployment = create::<Deployment>(client, &deployment, false).await.ok()?;
    // Without one, the workload is explained as well.
    let _ = create::<Instrumentation>(client, &instrumentation, false).await;
    Some(deployment)
}

async fn dry_run(client: &Client, deployment: &Value) -> Tried {
    let name = deployment["metadata"]["name"].as_str().expect("a name").to_owned();
    let pod = pod_of(&deployment["spec"]["template"], &name);
    let made = create::<Pod>(client, &pod, true).await;
    (name, pod, made)
}

/// Creates an object; gives what the API server made of it, or what it says against it.
async fn create<K: Resource<DynamicType = ()>>(
    client: &Client,
    object: &Value,
    dry_run: bool,
) -> Result<Value, String> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), NAMESPACE, &ApiResource::erase::<K>(&()));
    let sent: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
    match api.create(&PostParams { dry_run, ..PostParams::default() }, &sent).await {
        Ok(made) => Ok(serde_json::to_value(made).expect("JSON")),
        Err(kube::Error::Api(status)) => Err(status.message),
        Err(error) => panic!("the API server did not answer: {error}"),
    }
}

/// Waits until the webhook knows the Instrumentation that is stored last.
fn until_known(cluster: &Cluster) {
    cluster.instrumentation(NAMESPACE, "last", &json!({"selector": {"matchLabels": {(SEED): "last"}}}));
    let mut probe = java("probe");
    probe["metadata"]["labels"] = json!({(SEED): "last"});
    until("the webhook knows all Instrumentations", LIMIT, || {
        let made = cluster.dry_run(NAMESPACE, &probe);
        made.status().contains(&format!("{NAMESPACE}/last")).then_some(())
    });
}
