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
mod object;
mod owners;
mod rows;

use std::collections::HashMap;

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::Pod,
};
use kube::core::ApiResource;
use serde_json::Value;

pub use rows::{Next, Pods, Survey, Surveyed};

use super::{
    cluster::{Asked, ClusterReader, Part},
    injected,
    result::Subject,
};
use crate::cli::flags::InjectionFlags;
use look::Look;
use object::{text, typed};
use otel_webhook_inject::workload::OwnerKind;
use owners::Owners;

/// Looks at everything, or at one namespace.
pub async fn take(cluster: &ClusterReader, scope: Option<&str>, injection: &InjectionFlags) -> Survey {
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

struct Surveyor<'c> {
    cluster: &'c ClusterReader,
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

#[cfg(test)]
pub mod tests;
