//! The workloads that can be restarted, by watches: of each only what restarts depend on is kept.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use kube::{
    Client,
    api::{ApiResource, DynamicObject},
    runtime::watcher::Config,
};

use super::watches::{self, Watched};
use crate::scope::Scope;
use otel_webhook_fleet::{restart::Rollout, workload::Workload};

/// Objects on a page of a list. Each is reduced as it arrives.
const PAGE: u32 = 100;

/// The workloads of the kinds whose templates can be rolled out.
pub struct Workloads {
    deployments: Watched<DynamicObject, Rollout>,
    stateful_sets: Watched<DynamicObject, Rollout>,
    daemon_sets: Watched<DynamicObject, Rollout>,
}

impl Workloads {
    /// Begins to watch.
    pub fn watch(client: &Client, scope: &Scope) -> Self {
        Self {
            deployments: watched(client, scope, "Deployment", |object| reduced("Deployment", object)),
            stateful_sets: watched(client, scope, "StatefulSet", |object| reduced("StatefulSet", object)),
            daemon_sets: watched(client, scope, "DaemonSet", |object| reduced("DaemonSet", object)),
        }
    }

    /// Waits for an event. Returns whether something has changed.
    pub async fn step(&mut self) -> bool {
        tokio::select! {
            is_changed = self.deployments.step() => is_changed,
            is_changed = self.stateful_sets.step() => is_changed,
            is_changed = self.daemon_sets.step() => is_changed,
        }
    }

    /// Returns whether all are known.
    pub fn are_listed(&self) -> bool {
        [&self.deployments, &self.stateful_sets, &self.daemon_sets].iter().all(|kind| kind.is_listed())
    }

    /// Returns a workload; `None` if it does not exist, or its kind is not restarted.
    pub fn get(&self, workload: &Workload) -> Option<&Rollout> {
        let kind = match &*workload.kind {
            "Deployment" => &self.deployments,
            "StatefulSet" => &self.stateful_sets,
            "DaemonSet" => &self.daemon_sets,
            _ => return None,
        };
        kind.objects().get(&format!("{}/{}", workload.namespace, workload.name))
    }
}

/// Returns a kind of workloads that can be read and restarted; `None` for other kinds, such as Jobs.
pub fn resource(kind: &str) -> Option<ApiResource> {
    match kind {
        "Deployment" => Some(ApiResource::erase::<Deployment>(&())),
        "StatefulSet" => Some(ApiResource::erase::<StatefulSet>(&())),
        "DaemonSet" => Some(ApiResource::erase::<DaemonSet>(&())),
        _ => None,
    }
}

fn watched(
    client: &Client,
    scope: &Scope,
    kind: &'static str,
    reduce: fn(DynamicObject) -> Option<(String, Rollout)>,
) -> Watched<DynamicObject, Rollout> {
    let resource = resource(kind).expect("one of the three kinds");
    let events = watches::watch(client, scope, resource, Config::default().page_size(PAGE));
    Watched::new(events, kind, reduce)
}

fn reduced(kind: &str, object: DynamicObject) -> Option<(String, Rollout)> {
    let key = format!("{}/{}", object.metadata.namespace.as_deref()?, object.metadata.name.as_deref()?);
    let object = serde_json::to_value(object).ok()?;
    Some((key, Rollout::read(kind, &object)?))
}
