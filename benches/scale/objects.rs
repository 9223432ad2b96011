//! What is in the API server, and the reviews that refer to it.

use std::fmt;

use futures::TryStreamExt as _;
use otel_webhook_testkit::{
    cluster::{
        client::{Objects, at_once},
        control_plane::ControlPlane,
    },
    load::{limit_ranges, material},
};
use serde_json::{Value, json};

/// One in so many reviewed pods belongs to a Job.
const JOB_EVERY: usize = 10;

/// How many objects there are.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub namespaces: usize,
    pub instrumentations: usize,
    pub replica_sets: usize,
    /// LimitRanges, one a namespace; none but where they are asked for.
    pub limit_ranges: usize,
}

/// What figures have to reach, in milliseconds and MB.
pub struct Goals {
    /// From the start until it is ready.
    pub ready: &'static str,
    /// Resident memory.
    pub resident: &'static str,
    /// From the change of an Instrumentation until it is used, at p99.
    pub used: &'static str,
}

/// A filled API server.
pub struct Population {
    pub scale: Scale,
    objects: Objects,
    /// Reviews of pods in the namespaces that have an Instrumentation. The owners
    /// of each have to be asked for: a ReplicaSet's UID, or a Job's CronJob.
    pub reviews: Vec<Vec<u8>>,
}

impl Scale {
    /// What the goals are for.
    pub const USUAL: Self =
        Self { namespaces: 2_000, instrumentations: 1_000, replica_sets: 5_000, limit_ranges: 0 };

    /// Reads three numbers.
    pub fn parse(text: &str) -> Self {
        let numbers: Vec<usize> = text.split('/').filter_map(|number| number.parse().ok()).collect();
        let [namespaces, instrumentations, replica_sets] = numbers[..] else {
            panic!("{text} is not like {}", Self::USUAL);
        };
        assert!(instrumentations <= namespaces, "{text} has more Instrumentations than namespaces");
        Self { namespaces, instrumentations, replica_sets, limit_ranges: 0 }
    }

    /// What is to be reached with so many objects.
    pub fn goals(&self) -> Goals {
        if self.instrumentations > Self::USUAL.instrumentations {
            Goals { ready: "≤ 5000", resident: "≤ 60", used: "≤ 200" }
        } else {
            Goals { ready: "≤ 1000", resident: "≤ 25", used: "≤ 100" }
        }
    }

    /// The name of its figures. Those with LimitRanges are to be held against those without, so that they
    /// have the same name, but where they would take their place.
    pub fn figures(&self) -> String {
        let name = format!("scale-{}", self.to_string().replace('/', "-"));
        if self.limit_ranges > 0 && std::env::var_os("OTEL_WEBHOOK_KEEP_FIGURES").is_some() {
            return format!("{name}-limited-{}", self.limit_ranges);
        }
        name
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespaces, self.instrumentations, self.replica_sets)
    }
}

impl Population {
    /// Creates everything, a few requests at a time.
    pub async fn create(plane: &ControlPlane, scale: Scale) -> Self {
        plane.install_crd();
        let objects = Objects::connect(plane.kubeconfig()).await;
        objects.create_all((0..scale.namespaces).map(namespace)).await;
        objects.create_all((0..scale.instrumentations).map(instrumentation)).await;
        let limited = (0..scale.limit_ranges).map(|index| limit_ranges::of(&namespace_name(index)));
        objects.create_all(limited).await;
        let names: Vec<String> =
            (0..scale.replica_sets).map(|index| format!("order-{index:05}-7c9d8")).collect();
        let owners = names.iter().enumerate().map(|(index, name)| {
            let namespace = namespace_name(index % scale.instrumentations);
            if index % JOB_EVERY == 0 { job(&namespace, name) } else { replica_set(&namespace, name) }
        });
        let reviews = objects.create_all(owners).await.iter().map(review_of_pod).collect();
        Self { scale, objects, reviews }
    }

    /// Changes one Instrumentation, by a marker that injected pods get as a variable.
    pub async fn mark(&self, index: usize, marker: &str) -> kube::Result<()> {
        let patch = json!({"spec": {"env": [{"name": "MARKER", "value": marker}]}});
        self.objects.merge(&instrumentation(index), &patch).await
    }

    /// Changes all Instrumentations in turn, so many times together.
    pub async fn burst(&self, count: usize) -> kube::Result<()> {
        let marks = (0..count).map(|number| {
            let marker = format!("burst-{number}");
            async move { self.mark(number % self.scale.instrumentations, &marker).await }
        });
        at_once(marks).try_collect().await
    }
}

/// The namespace of the first Instrumentation.
pub fn first_namespace() -> String {
    namespace_name(0)
}

/// The first Instrumentation, which adds nothing that has to be looked up.
pub fn first_instrumentation() -> Value {
    instrumentation(0)
}

fn namespace_name(index: usize) -> String {
    format!("team-{index:05}")
}

/// With labels and annotations as platforms put them there, and kubectl's.
fn namespace(index: usize) -> Value {
    let name = namespace_name(index);
    let labels = json!({"team": name, "cost-center": format!("cc-{}", index % 40),
        "pod-security.kubernetes.io/enforce": "baseline"});
    let metadata = json!({"name": name, "labels": labels, "annotations": {
        "example.com/owner": format!("{name}@example.com"),
        "instrumentation.opentelemetry.io/inject-sdk": "false",
    }});
    with_last_applied(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
}

/// The captured one, which in every second namespace wants UIDs as well.
fn instrumentation(index: usize) -> Value {
    let mut object = material::instrumentation_of(&namespace_name(index), "default", None);
    object["spec"]["resource"] = json!({"addK8sUIDAttributes": index % 2 == 1});
    with_last_applied(object)
}

fn with_last_applied(mut object: Value) -> Value {
    let text = object.to_string();
    object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = text.into();
    object
}

/// The pod's template is the captured pod.
fn template() -> Value {
    let mut pod = material::usual()["request"]["object"].take();
    let spec = pod["spec"].take();
    json!({"metadata": {"labels": {"app": "order"}, "annotations": pod["metadata"]["annotations"]}, "spec": spec})
}

/// Without a hash of its template in its labels, so that its Deployment has to be asked for.
fn replica_set(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": "order"}, "ownerReferences": [
            owner("apps/v1", "Deployment", &name[..name.len() - 6])]},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "order"}}, "template": template()},
    })
}

fn job(namespace: &str, name: &str) -> Value {
    let mut template = template();
    template["spec"]["restartPolicy"] = "Never".into();
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"namespace": namespace, "name": name, "ownerReferences": [
            owner("batch/v1", "CronJob", &name[..name.len() - 6])]},
        "spec": {"suspend": true, "template": template},
    })
}

fn owner(version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid(name), "controller": true})
}

/// A UID that is the same for the same name.
fn uid(name: &str) -> String {
    let number = name.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("00000000-0000-4000-8000-{:012x}", number & 0xffff_ffff_ffff)
}

/// The captured review of a pod of this ReplicaSet or Job.
fn review_of_pod(owner: &Value) -> Vec<u8> {
    let mut review = material::usual();
    let namespace = &owner["metadata"]["namespace"];
    review["request"]["namespace"] = namespace.clone();
    let metadata = &mut review["request"]["object"]["metadata"];
    metadata["namespace"] = namespace.clone();
    metadata["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    serde_json::to_vec(&review).expect("JSON")
}
