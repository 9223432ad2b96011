//! The pods of a cluster, injected and missed, and their Instrumentations.

use std::{fmt, time::Duration};

use futures::{StreamExt as _, stream};
use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_testkit::{
    cluster::control_plane::ControlPlane, known::Known, load::material, surroundings::review, until::until,
};
use serde_json::{Value, json};

/// Requests at the same time.
const AT_ONCE: usize = 16;

/// One in so many workloads was created while the webhook was away.
pub const MISSED_EVERY: usize = 10;

/// How many objects there are.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Running pods.
    pub pods: usize,
    /// Deployments, of which each has as many of them.
    pub workloads: usize,
    /// Instrumentations, one a namespace.
    pub instrumentations: usize,
}

/// A filled API server.
pub struct Fleet {
    /// How many objects there are.
    pub scale: Scale,
    client: Client,
}

impl Scale {
    /// What the goals are for.
    pub const USUAL: Self = Self { pods: 50_000, workloads: 5_000, instrumentations: 1_000 };

    /// Reads three numbers.
    pub fn parse(text: &str) -> Self {
        let numbers: Vec<usize> = text.split('/').filter_map(|number| number.parse().ok()).collect();
        let [pods, workloads, instrumentations] = numbers[..] else {
            panic!("{text:?} is not pods/workloads/Instrumentations, as in 5000/500/100")
        };
        Self { pods, workloads, instrumentations }
    }

    /// The name of the committed figures.
    pub fn figures(&self) -> String {
        format!("fleet-{}-{}-{}", self.pods, self.workloads, self.instrumentations)
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} pods, {} workloads, {} Instrumentations",
            self.pods, self.workloads, self.instrumentations
        )
    }
}

impl Fleet {
    /// Creates everything, a few requests at a time.
    pub async fn create(plane: &ControlPlane, scale: Scale) -> Self {
        plane.apply(include_str!("../../manifests/crd/crd.yaml"));
        until("the CRD is served", Duration::from_secs(60), || {
            plane.kubectl(&["get", "instrumentations.opentelemetry.io"]).ok.then_some(())
        });
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("a configuration")).expect("a client");
        let fleet = Self { scale, client };
        let names = || (0..scale.instrumentations).map(namespace);
        fleet
            .post(
                names()
                    .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})),
            )
            .await;
        let account = |name| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}});
        fleet.post(names().map(account)).await;
        fleet.post(names().map(|name| material::instrumentation_of(&name, "default", None))).await;
        fleet.post((0..scale.pods).map(|index| pod(index, &scale))).await;
        fleet
    }

    /// Changes an Instrumentation of injected pods, so that they are stale.
    pub async fn change(&self, marker: &str) {
        let patch = json!({"spec": {"env": [{"name": "MARKER", "value": marker}]}});
        let api = self.instrumentations(&namespace(1));
        api.patch("default", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("it is changed");
    }

    /// The number of stale pods by the status of that Instrumentation.
    pub async fn stale(&self) -> u64 {
        let found = self.instrumentations(&namespace(1)).get("default").await.expect("it is there");
        found.data["status"]["pods"]["stale"].as_u64().unwrap_or_default()
    }

    /// How many Instrumentations have a status.
    pub async fn told(&self) -> usize {
        let kind =
            ApiResource::from_gvk(&GroupVersionKind::gvk("opentelemetry.io", "v1alpha1", "Instrumentation"));
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let all = api.list(&kube::api::ListParams::default()).await.expect("a list");
        all.iter().filter(|one| one.data["status"]["pods"].is_object()).count()
    }

    fn instrumentations(&self, namespace: &str) -> Api<DynamicObject> {
        let kind =
            ApiResource::from_gvk(&GroupVersionKind::gvk("opentelemetry.io", "v1alpha1", "Instrumentation"));
        Api::namespaced_with(self.client.clone(), namespace, &kind)
    }

    async fn post(&self, objects: impl Iterator<Item = Value>) {
        let requests = objects.map(|object| async move {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            let object: DynamicObject = serde_json::from_value(object).expect("an object");
            let types = object.types.clone().expect("a kind");
            let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types).expect("a kind"));
            let client = self.client.clone();
            let api: Api<DynamicObject> = if namespace.is_empty() {
                Api::all_with(client, &kind)
            } else {
                Api::namespaced_with(client, &namespace, &kind)
            };
            api.create(&PostParams::default(), &object).await.expect("the API server takes it");
        });
        stream::iter(requests).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await;
    }
}

fn namespace(index: usize) -> String {
    format!("team-{index:05}")
}

/// The captured pod, as one of a Deployment. Most are injected.
fn pod(index: usize, scale: &Scale) -> Value {
    let workload = index % scale.workloads;
    let namespace = namespace(workload % scale.instrumentations);
    let mut pod = material::usual()["request"]["object"].take();
    let replica_set = format!("order-{workload:05}-7c9d8");
    let metadata = pod["metadata"].as_object_mut().expect("metadata");
    for field in ["managedFields", "generateName", "uid", "creationTimestamp"] {
        metadata.remove(field);
    }
    metadata.insert("name".to_owned(), format!("{replica_set}-{index:05}").into());
    metadata.insert("namespace".to_owned(), namespace.as_str().into());
    metadata["labels"]["pod-template-hash"] = "7c9d8".into();
    metadata.insert(
        "ownerReferences".to_owned(),
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set, "controller": true,
            "uid": format!("00000000-0000-0000-0000-{workload:012}")}]),
    );
    if workload.is_multiple_of(MISSED_EVERY) {
        return pod;
    }
    let known =
        Known::of([&material::instrumentation_of(&namespace, "default", None)], &DefaultImages::default());
    let outcome = review(&known.catalogue, &known.owners, &namespace, &pod);
    json_patch::patch(&mut pod, &outcome.patch.operations()).expect("it applies");
    pod
}
