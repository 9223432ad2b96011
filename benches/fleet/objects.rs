//! The pods of a cluster, injected and missed, and their Instrumentations.

use std::fmt;

use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_testkit::{
    cluster::{client::Objects, control_plane::ControlPlane},
    known::Known,
    load::material,
    surroundings::review,
};
use serde_json::{Value, json};

/// One in so many workloads was created while the webhook was unavailable.
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
    objects: Objects,
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
        plane.install_crd();
        let fleet = Self { scale, objects: Objects::connect(plane.kubeconfig()).await };
        let names = || (0..scale.instrumentations).map(namespace);
        let namespace = |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        fleet.objects.create_all(names().map(namespace)).await;
        let account = |name| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}});
        fleet.objects.create_all(names().map(account)).await;
        fleet.objects.create_all(names().map(|name| instrumentation(&name))).await;
        fleet.objects.create_all((0..scale.pods).map(|index| pod(index, &scale))).await;
        fleet
    }

    /// Changes an Instrumentation of injected pods, so that they are stale.
    pub async fn change(&self, marker: &str) {
        let patch = json!({"spec": {"env": [{"name": "MARKER", "value": marker}]}});
        self.objects.merge(&instrumentation(&namespace(1)), &patch).await.expect("it is changed");
    }

    /// The number of stale pods by the status of that Instrumentation.
    pub async fn stale(&self) -> u64 {
        let found =
            self.objects.api(&instrumentation(&namespace(1))).get("default").await.expect("it is there");
        found.data["status"]["pods"]["stale"].as_u64().unwrap_or_default()
    }

    /// What injected pods send as their instances.
    pub fn instances(&self) -> Vec<String> {
        let is_injected = |index: &usize| !(index % self.scale.workloads).is_multiple_of(MISSED_EVERY);
        let injected = (0..self.scale.pods).filter(is_injected);
        injected
            .map(|index| Pod::of(index, &self.scale))
            .map(|pod| format!("{}.{}.order", pod.namespace, pod.name))
            .collect()
    }

    /// How many Instrumentations have a status.
    pub async fn told(&self) -> usize {
        let mut any = instrumentation("");
        any["metadata"] = json!({});
        let all = self.objects.api(&any).list(&kube::api::ListParams::default()).await.expect("a list");
        all.iter().filter(|one| one.data["status"]["pods"].is_object()).count()
    }
}

/// The only one of a namespace.
fn instrumentation(namespace: &str) -> Value {
    material::instrumentation_of(namespace, "default", None)
}

fn namespace(index: usize) -> String {
    format!("team-{index:05}")
}

/// Where a pod is.
struct Pod {
    workload: usize,
    namespace: String,
    replica_set: String,
    name: String,
}

impl Pod {
    fn of(index: usize, scale: &Scale) -> Self {
        let workload = index % scale.workloads;
        let replica_set = format!("order-{workload:05}-7c9d8");
        let name = format!("{replica_set}-{index:05}");
        Self { workload, namespace: namespace(workload % scale.instrumentations), replica_set, name }
    }
}

/// The captured pod, as one of a Deployment. Most are injected.
fn pod(index: usize, scale: &Scale) -> Value {
    let Pod { workload, namespace, replica_set, name } = Pod::of(index, scale);
    let mut pod = material::usual()["request"]["object"].take();
    let metadata = pod["metadata"].as_object_mut().expect("metadata");
    for field in ["managedFields", "generateName", "uid", "creationTimestamp"] {
        metadata.remove(field);
    }
    metadata.insert("name".to_owned(), name.into());
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
    let known = Known::of([&instrumentation(&namespace)], &DefaultImages::default());
    let outcome = review(&known.catalogue, &known.owners, &namespace, &pod);
    json_patch::patch(&mut pod, &outcome.patch.operations()).expect("it applies");
    pod
}
