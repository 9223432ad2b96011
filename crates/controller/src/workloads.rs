//! The workloads that can be restarted, by watches: of each only what restarts depend on is kept.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use kube::{Client, api::ApiResource, runtime::watcher::Config};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Map, Value, json};

use super::watches::{self, Watched};
use otel_webhook_fleet::{restart::Rollout, workload::Workload};
use otel_webhook_store::{reduced::Whole, scope::Scope};

/// Objects on a page of a list. Each is reduced as it arrives.
const PAGE: u32 = 100;

/// The workloads of the kinds whose templates can be rolled out.
pub struct Workloads {
    deployments: Watched<Whole, Rollout>,
    stateful_sets: Watched<Whole, Rollout>,
    daemon_sets: Watched<Whole, Rollout>,
}

impl Workloads {
    /// Begins to watch.
    pub fn watch(client: &Client, scope: &Scope) -> Self {
        Self {
            deployments: watched(client, scope, "Deployment", |object| reduced("Deployment", &object)),
            stateful_sets: watched(client, scope, "StatefulSet", |object| reduced("StatefulSet", &object)),
            daemon_sets: watched(client, scope, "DaemonSet", |object| reduced("DaemonSet", &object)),
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
    reduce: fn(Whole) -> Option<(String, Rollout)>,
) -> Watched<Whole, Rollout> {
    let resource = resource(kind).expect("one of the three kinds");
    let events = watches::watch(client, scope, resource, Config::default().page_size(PAGE));
    Watched::new(events, kind, reduce)
}

/// A specification without the lists that make it large, and of which restarts read nothing.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    template: Template,
    #[serde(default, skip_serializing, rename = "volumeClaimTemplates")]
    _volume_claim_templates: IgnoredAny,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Likewise a pod template.
#[derive(Default, Deserialize, Serialize)]
struct Template {
    #[serde(default)]
    metadata: Value,
}

fn reduced(kind: &str, object: &Whole) -> Option<(String, Rollout)> {
    let Whole { metadata, spec, status } = object;
    let key = format!("{}/{}", metadata.namespace.as_deref()?, metadata.name.as_deref()?);
    let spec: Spec = serde_json::from_str(spec.as_ref()?.get()).ok()?;
    let object = json!({"metadata": metadata, "spec": spec, "status": status});
    Some((key, Rollout::read(kind, &object)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_a_workload_large_is_not_read() {
        let large = json!([{"name": "app", "env": [{"name": "A", "value": "a"}]}]);
        let mut object = json!({
            "metadata": {"namespace": "shop", "name": "order", "resourceVersion": "7", "generation": 2,
                "annotations": {"otel-webhook/restart": "rollout"}},
            "spec": {
                "replicas": 3, "minReadySeconds": 5, "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": {"app": "order"}},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
                "template": {"metadata": {"annotations": {"otel-webhook/config": "v1:a"}}, "spec": {"containers": large}},
                "volumeClaimTemplates": large,
            },
            "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "availableReplicas": 2},
        });
        let whole: Whole = serde_json::from_value(object.clone()).expect("an object");
        let spec: Spec = serde_json::from_value(object["spec"].clone()).expect("a specification");
        let kept = serde_json::to_value(spec).expect("JSON");
        assert!(!kept.to_string().contains("value"), "{kept}");
        assert_eq!(kept["template"]["metadata"], object["spec"]["template"]["metadata"]);
        for name in ["StatefulSet", "Deployment", "DaemonSet"] {
            let (key, rollout) = reduced(name, &whole).expect("a workload");
            assert_eq!(
                (key.as_str(), &rollout),
                ("shop/order", &Rollout::read(name, &object).expect("the same"))
            );
        }
        object["spec"] = json!("no object");
        let whole: Whole = serde_json::from_value(object).expect("an object");
        assert!(reduced("Deployment", &whole).is_none());
    }
}
