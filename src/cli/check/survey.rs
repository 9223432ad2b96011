//! Every workload of a cluster, seen once: what its pods have, and what new ones would get.
//!
//! ```text
//! namespaces, Instrumentations ─> store ─┐
//! pods ─> tally by workload              ├─ the core ─> findings
//! Deployments, … in pages ───────────────┘
//! ```
//! An object is looked at when its page comes and dropped again, so that what
//! is kept is one row a workload.

mod known;
mod look;
mod owners;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::Pod,
};
use kube::core::ApiResource;
use serde_json::Value;

use super::{
    cluster::{Asked, Cluster, NotTold, Part},
    differences::Difference,
    finding::Subject,
    injected::{self, By},
    registration::Labels,
};
use crate::cli::InjectionFlags;
use look::Look;
use otel_webhook_inject::{Finding, workload::OwnerKind};
use owners::Owners;

/// The annotation by which a pod or a namespace asks the operator for a collector.
const COLLECTOR: &str = "sidecar.opentelemetry.io/inject";

/// What was seen.
#[derive(Debug, Default)]
pub struct Survey {
    /// Labels of each namespace.
    pub namespaces: BTreeMap<String, Labels>,
    /// What comes of what namespaces ask for all their pods.
    pub asking: Vec<(String, Vec<Finding>)>,
    /// Instrumentations that cannot be used, with their problems.
    pub unusable: Vec<(Subject, String)>,
    /// Namespaces that ask the operator for a collector in every pod.
    collectors: BTreeSet<String>,
    /// The workloads, by namespace, kind and name.
    pub workloads: Vec<Surveyed>,
    /// What could not be read.
    pub not_told: Vec<NotTold>,
}

/// One workload.
#[derive(Debug)]
pub struct Surveyed {
    /// The workload.
    pub subject: Subject,
    /// Labels of its pods.
    pub labels: Labels,
    /// The languages that its own template names, whatever its namespace says.
    pub own: Vec<&'static str>,
    /// Whether the operator is asked for a collector in its pods; none until the namespace is asked, too.
    pub collector: Option<bool>,
    /// What a new pod would get.
    pub next: Next,
    /// Its pods.
    pub pods: Pods,
    /// How a new pod would differ from the operator's.
    pub differences: Vec<Difference>,
}

/// What a new pod would get.
#[derive(Debug)]
pub enum Next {
    /// What the core finds.
    Decided(Vec<Finding>),
    /// The pod cannot be read.
    Unreadable(String),
    /// Its template is not known: another controller makes the pods.
    Unknown,
}

/// The running pods of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pods {
    /// How many there are.
    pub count: usize,
    /// How many of them have a language, by whom.
    pub have: BTreeMap<(&'static str, By), usize>,
}

impl Pods {
    /// How many have a language, whoever gave it to them.
    pub fn with(&self, language: &str) -> usize {
        self.have.iter().filter(|((own, _), _)| *own == language).map(|(_, count)| count).sum()
    }

    fn add(&mut self, pod: &Value) {
        self.count += 1;
        for has in injected::languages(pod) {
            *self.have.entry(has).or_default() += 1;
        }
    }
}

/// Looks at everything, or at one namespace.
pub async fn take(cluster: &Cluster, scope: Option<&str>, injection: &InjectionFlags) -> Survey {
    let mut survey = Survey::default();
    let look = known::list(cluster, scope, injection, &mut survey).await;
    let mut surveyor =
        Surveyor { cluster, scope, look, owners: Owners::default(), tally: HashMap::new(), survey };
    surveyor.list_pods().await;
    surveyor.list_workloads().await;
    let mut survey = surveyor.survey;
    let order = |one: &Surveyed| {
        let Subject { kind, namespace, name } = one.subject.clone();
        (namespace, kind, name)
    };
    survey.workloads.sort_by_cached_key(order);
    survey
}

impl Survey {
    /// Whether there is not even a namespace, as far as that was told.
    pub fn is_of_nowhere(&self) -> bool {
        self.namespaces.is_empty() && self.not_told.is_empty()
    }
}

struct Surveyor<'c> {
    cluster: &'c Cluster,
    scope: Option<&'c str>,
    look: Look,
    owners: Owners,
    tally: HashMap<Subject, Pods>,
    survey: Survey,
}

impl Surveyor<'_> {
    /// Pods, counted for their workloads; those that no workload of ours made are workloads themselves.
    async fn list_pods(&mut self) {
        for (kind, resource) in [
            (OwnerKind::ReplicaSet, ApiResource::erase::<ReplicaSet>(&())),
            (OwnerKind::Job, ApiResource::erase::<Job>(&())),
        ] {
            let owners = &mut self.owners;
            let take = |object: Value| owners.put(kind, &object);
            let told = self.cluster.each(&resource, self.scope, Part::Metadata, take).await;
            self.note(told);
        }
        let (cluster, scope) = (self.cluster, self.scope);
        let take = |pod: Value| self.see_pod(pod);
        let told = cluster.each(&ApiResource::erase::<Pod>(&()), scope, Part::Whole, take).await;
        self.note(told);
    }

    fn see_pod(&mut self, pod: Value) {
        let ended = ["Succeeded", "Failed"].contains(&pod["status"]["phase"].as_str().unwrap_or_default());
        if ended || !pod["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        let pod = typed(pod, "v1", "Pod");
        let (subject, is_listed) = self.owners.of(&pod);
        // What a kubelet runs from its own files is only shown by the API server.
        if subject.kind == "Node" {
            return;
        }
        let is_first = !self.tally.contains_key(&subject);
        self.tally.entry(subject.clone()).or_default().add(&pod);
        if is_listed || !is_first {
            return;
        }
        // What the template of another controller says shows in its pods until they are injected.
        let hides_template = subject.kind != "Pod" && !injected::languages(&pod).is_empty();
        if let Some(mut surveyed) = self.look.at(pod, subject) {
            if hides_template {
                surveyed.next = Next::Unknown;
                surveyed.differences.clear();
            }
            self.survey.workloads.push(surveyed);
        }
    }

    /// Everything that makes pods.
    async fn list_workloads(&mut self) {
        for resource in [
            ApiResource::erase::<Deployment>(&()),
            ApiResource::erase::<StatefulSet>(&()),
            ApiResource::erase::<DaemonSet>(&()),
            ApiResource::erase::<CronJob>(&()),
        ] {
            let (cluster, scope) = (self.cluster, self.scope);
            let take = |object: Value| self.see(typed(object, &resource.api_version, &resource.kind));
            let told = cluster.each(&resource, scope, Part::Whole, take).await;
            self.note(told);
        }
        // Those that have pods and no owner that makes them: few, so they are read one by one.
        let mut left: Vec<Subject> = self.tally.keys().cloned().collect();
        left.retain(|subject| ["ReplicaSet", "Job"].contains(&&*subject.kind));
        for subject in left {
            let (kind, resource) = match &*subject.kind {
                "Job" => (OwnerKind::Job, ApiResource::erase::<Job>(&())),
                _ => (OwnerKind::ReplicaSet, ApiResource::erase::<ReplicaSet>(&())),
            };
            match self.cluster.get_value(&resource, Some(&subject.namespace), &subject.name).await {
                Ok(Some(object)) => {
                    self.look.book.put(kind, &object);
                    self.see(typed(object, &resource.api_version, &resource.kind));
                }
                Ok(None) => {}
                Err(not_told) => self.note(Err(not_told)),
            }
        }
        for surveyed in &mut self.survey.workloads {
            surveyed.pods = self.tally.remove(&surveyed.subject).unwrap_or_default();
            let by_namespace = self.survey.collectors.contains(&surveyed.subject.namespace);
            surveyed.collector = surveyed.collector.or(Some(by_namespace));
        }
    }

    fn see(&mut self, object: Value) {
        let text = |field: &str| text(&object["metadata"][field]);
        let kind = object["kind"].as_str().unwrap_or_default();
        let subject = Subject::new(kind, &text("namespace"), &text("name"));
        self.survey.workloads.extend(self.look.at(object, subject));
    }

    fn note(&mut self, told: Asked<()>) {
        self.survey.not_told.extend(told.err());
    }
}

/// Lists leave the type of their items out.
fn typed(mut object: Value, api_version: &str, kind: &str) -> Value {
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object
}

fn labels(object: &Value) -> Labels {
    let all = object["metadata"]["labels"].as_object().into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
pub mod tests;
