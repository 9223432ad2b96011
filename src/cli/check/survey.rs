//! Reads every workload of a cluster once: what is injected into its pods, and into new ones.
//!
//! ```text
//! namespaces, Instrumentations ─> store ─┐
//! pods ─> counts by workload             ├─ decisions ─> findings
//! Deployments, … in pages ───────────────┘
//! ```
//! Each object is processed with its page and then dropped, so that only one row per workload is kept.

mod look;
mod rows;

use std::collections::{BTreeSet, HashMap};

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::Pod,
};
use kube::core::ApiResource;
use serde_json::Value;

pub use rows::{Next, Pods, Survey, Surveyed};

use crate::cli::cluster::{
    injected,
    known::{Flags, Known},
    object::{text, typed},
    owners::Owners,
    pods,
    reader::{Asked, ClusterReader, Part},
    subject::Subject,
    unread::Unsure,
};
use otel_webhook_inject::{catalogue::Stored, workload::OwnerKind};

/// Reads all namespaces, or one.
pub async fn take(cluster: &ClusterReader, scope: Option<&str>, flags: Flags<'_>) -> Survey {
    let mut known = Known::list(cluster, scope, flags).await;
    let mut survey = once(cluster, scope, &mut known).await;
    // Workloads may name Instrumentations of namespaces that were not listed yet.
    let named = survey.workloads.iter().flat_map(|one| &one.unsure).filter_map(Unsure::instrumentations_of);
    let named: BTreeSet<String> = named.map(str::to_owned).collect();
    if !named.is_empty() && known.learn(cluster, named).await {
        survey = once(cluster, scope, &mut known).await;
    }
    survey.not_told.splice(0..0, known.not_told);
    survey.namespaces = known.namespaces;
    survey.collectors = known.collectors;
    survey.unread = known.unread;
    survey
}

async fn once(cluster: &ClusterReader, scope: Option<&str>, known: &mut Known) -> Survey {
    let mut survey = Survey::default();
    note(&mut survey, known, scope);
    let (owners, tally) = (Owners::default(), HashMap::new());
    let mut surveyor = Surveyor { cluster, scope, known, owners, tally, are_pods_told: true, survey };
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

struct Surveyor<'c> {
    cluster: &'c ClusterReader,
    scope: Option<&'c str>,
    known: &'c mut Known,
    owners: Owners,
    tally: HashMap<Subject, Pods>,
    are_pods_told: bool,
    survey: Survey,
}

impl Surveyor<'_> {
    /// Counts the pods of each workload. Pods without a known controller are workloads themselves.
    async fn list_pods(&mut self) {
        let before = self.survey.not_told.len();
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
        self.are_pods_told = self.survey.not_told.len() == before;
    }

    fn see_pod(&mut self, pod: Value) {
        if pods::has_ended(&pod) {
            return;
        }
        let pod = typed(pod, "v1", "Pod");
        let (subject, is_listed) = self.owners.of(&pod);
        // Mirror pods of static pods are not created through the API server.
        if subject.kind == "Node" {
            return;
        }
        let is_first = !self.tally.contains_key(&subject);
        self.tally.entry(subject.clone()).or_default().add(&pod);
        if is_listed || !is_first {
            return;
        }
        // Pods of another controller show its template as long as they are not injected.
        let hides_template = subject.kind != "Pod" && !injected::languages(&pod).is_empty();
        if let Some(mut surveyed) = look::at(self.known, pod, subject) {
            if hides_template {
                surveyed.next = Next::Unknown;
                surveyed.unsure.clear();
                surveyed.differences.clear();
            }
            self.survey.workloads.push(surveyed);
        }
    }

    /// Reads all workloads with pod templates.
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
        // ReplicaSets and Jobs with pods but without a controller: few, so each is read on its own.
        let mut left: Vec<Subject> = self.tally.keys().cloned().collect();
        left.retain(|subject| ["ReplicaSet", "Job"].contains(&&*subject.kind));
        for subject in left {
            let (kind, resource) = match &*subject.kind {
                "Job" => (OwnerKind::Job, ApiResource::erase::<Job>(&())),
                _ => (OwnerKind::ReplicaSet, ApiResource::erase::<ReplicaSet>(&())),
            };
            match self.cluster.get_value(&resource, Some(&subject.namespace), &subject.name).await {
                Ok(Some(object)) => {
                    self.known.book.put(kind, &object);
                    self.see(typed(object, &resource.api_version, &resource.kind));
                }
                Ok(None) => {}
                Err(not_told) => self.note(Err(not_told)),
            }
        }
        for surveyed in &mut self.survey.workloads {
            surveyed.pods = self.tally.remove(&surveyed.subject).unwrap_or_default();
            surveyed.pods.is_unknown = !self.are_pods_told;
            let by_namespace = self.known.collectors.contains(&surveyed.subject.namespace);
            surveyed.collector = surveyed.collector.or(Some(by_namespace));
        }
    }

    fn see(&mut self, object: Value) {
        let text = |field: &str| text(&object["metadata"][field]);
        let kind = object["kind"].as_str().unwrap_or_default();
        let subject = Subject::new(kind, &text("namespace"), &text("name"));
        self.survey.workloads.extend(look::at(self.known, object, subject));
    }

    fn note(&mut self, told: Asked<()>) {
        self.survey.not_told.extend(told.err());
    }
}

/// Records the languages that namespaces opt in to, and unusable Instrumentations.
fn note(survey: &mut Survey, known: &Known, scope: Option<&str>) {
    let mut namespaces: Vec<_> = known.snapshot.catalogue.namespaces.iter().collect();
    namespaces.retain(|(name, _)| scope.is_none_or(|scope| scope == &***name));
    namespaces.sort_by_key(|(name, _)| *name);
    for (name, namespace) in namespaces {
        let findings = look::at_namespace(known, name);
        if !findings.is_empty() {
            survey.asking.push((name.to_string(), findings));
        }
        for stored in &namespace.instrumentations {
            if let Stored::Invalid { name, problem, .. } = stored {
                let subject = Subject::new("Instrumentation", &name.namespace, &name.name);
                survey.unusable.push((subject, problem.to_string()));
            }
        }
    }
}

#[cfg(test)]
pub mod tests;
