//! Reads every workload of a cluster once: what is injected into its pods, and into new ones.
//!
//! ```text
//! namespaces, Instrumentations ─> store ─┐
//! pods ─> counts by workload             ├─ decisions ─> findings
//! Deployments, … in pages ───────────────┘
//! ```
//! Each object is processed with its page and then dropped, so that only one row per workload is kept.

mod look;
mod others;
mod rows;

use std::collections::{BTreeSet, HashMap};

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::Pod,
};
use kube::core::ApiResource;
use serde_json::Value;

use others::{Others, StandIn};
pub use rows::{Next, Pods, Replaced, Survey, Surveyed};

use crate::cli::cluster::{
    fleet,
    known::{Flags, Known},
    object::{text, typed},
    owners::{Listed, Owned, Owners},
    reader::{Asked, ClusterReader, Part},
};
use crate::{subject::Subject, unread::Unsure};
use otel_webhook_fleet::{census::Census, pod::RunningPod, workload};
use otel_webhook_inject::{catalogue::Stored, mistakes::Fault, workload::OwnerKind};

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
    survey.paused = known.snapshot.catalogue.pauses();
    survey.namespaces = known.namespaces;
    survey.collectors = known.collectors;
    survey.unread = known.unread;
    survey
}

async fn once(cluster: &ClusterReader, scope: Option<&str>, known: &mut Known) -> Survey {
    let mut survey = Survey::default();
    note(&mut survey, known, scope);
    survey.mistakes.clone_from(&known.mistakes);
    let mut surveyor = Surveyor {
        cluster,
        scope,
        known,
        owners: Owners::default(),
        others: Others::default(),
        tally: HashMap::new(),
        census: Census::default(),
        are_pods_told: true,
        survey,
    };
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
    others: Others,
    tally: HashMap<Subject, Pods>,
    census: Census,
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
        let Some(mut running) = RunningPod::read(&pod) else { return };
        let pod = typed(pod, "v1", "Pod");
        let Owned { subject, listed } = self.owners.of(&pod);
        // By the owner references that were read, not by names.
        running.workload = counted(&subject);
        let is_injected = running.agents.iter().flatten().next().is_some();
        let is_first = !self.tally.contains_key(&subject);
        self.tally.entry(subject.clone()).or_default().add(&running);
        self.census.put(running);
        match listed {
            Listed::Always => {}
            Listed::Never => self.survey.workloads.extend(look::at(self.known, pod, subject)),
            Listed::ByOwner(api_version, kind) => {
                self.others.kinds.insert((api_version, kind));
                if is_first {
                    self.others.keep(self.known, pod, subject, is_injected);
                }
            }
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
        self.list_others().await;
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
        let rows = fleet::count(&self.census, self.known, None).0.report.workloads.into_iter();
        let mut failures: HashMap<_, _> = rows.map(|row| (row.workload, row.failures)).collect();
        for surveyed in &mut self.survey.workloads {
            surveyed.failures = failures.remove(&counted(&surveyed.subject)).unwrap_or_default();
            surveyed.pods = self.tally.remove(&surveyed.subject).unwrap_or_default();
            surveyed.pods.is_unknown = !self.are_pods_told;
            let by_namespace = self.known.collectors.contains(&surveyed.subject.namespace);
            surveyed.collector = surveyed.collector.or(Some(by_namespace));
        }
    }

    /// Lists workloads of the kinds that other controllers bring. Where a kind cannot be listed, the ReplicaSet or a
    /// pod shows the template; that is no error.
    async fn list_others(&mut self) {
        let rollout = ("argoproj.io/v1alpha1".to_owned(), "Rollout".to_owned());
        let mut kinds = std::mem::take(&mut self.others.kinds);
        kinds.insert(rollout);
        let mut resources: Vec<ApiResource> = Vec::new();
        for (api_version, kind) in kinds {
            let found = self.cluster.resource(&api_version, &kind).await;
            let is_new = |found: &ApiResource| {
                resources.iter().all(|known| (&known.group, &known.kind) != (&found.group, &found.kind))
            };
            resources.extend(found.filter(is_new));
        }
        for resource in resources {
            let (cluster, scope) = (self.cluster, self.scope);
            let take = |object: Value| self.see(typed(object, &resource.api_version, &resource.kind));
            // Pods of those that cannot be listed have their stand-ins.
            let _ = cluster.each(&resource, scope, Part::Whole, take).await;
        }
        for subject in self.survey.workloads.iter().map(|one| &one.subject) {
            self.others.forget(subject);
        }
        for (subject, stand_in) in self.others.take() {
            let surveyed = match stand_in {
                StandIn::Pod(surveyed) => Some(*surveyed),
                StandIn::ReplicaSet(name) => self.template_of(subject, &name).await,
            };
            self.survey.workloads.extend(surveyed);
        }
    }

    /// Returns the row of a workload by the template of one of its ReplicaSets.
    async fn template_of(&mut self, subject: Subject, replica_set: &str) -> Option<Surveyed> {
        let kind = ApiResource::erase::<ReplicaSet>(&());
        match self.cluster.get_value(&kind, Some(&subject.namespace), replica_set).await {
            Ok(object) => {
                let object = object?;
                self.known.book.put(OwnerKind::ReplicaSet, &object);
                let mut surveyed =
                    look::at(self.known, typed(object, &kind.api_version, &kind.kind), subject)?;
                surveyed.mistakes.retain(|mistake| mistake.fault != Fault::OnWorkload);
                Some(surveyed)
            }
            Err(not_told) => {
                self.note(Err(not_told));
                None
            }
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

/// Returns the workload under which its pods are counted.
fn counted(subject: &Subject) -> workload::Workload {
    workload::Workload::new(&subject.kind, &subject.namespace, &subject.name)
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
