//! The requests of a plan.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, EvictParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;

use crate::{status::MANAGER, workloads::resource};
use otel_webhook_fleet::{
    restart::{Change, annotations},
    workload::Workload,
};

/// What came of a request.
pub enum Taken {
    /// It was done.
    Done,
    /// The workload has changed since it was read, or the pod is gone: nothing was done.
    Changed,
    /// An eviction is not possible now, for this reason.
    Refused(String),
}

/// Writes a change into the pod template and the record of a workload, in one patch, if it is as it was read.
///
/// # Errors
/// If the API server refuses it for another reason than a conflict.
pub async fn roll_out(
    client: &Client,
    workload: &Workload,
    change: &Change,
    resource_version: &str,
) -> Result<Taken, kube::Error> {
    let Some(kind) = resource(&workload.kind) else { return Ok(Taken::Changed) };
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &workload.namespace, &kind);
    let patch = json!({
        "metadata": {"resourceVersion": resource_version, "annotations": {(annotations::RECORD): change.write()}},
        "spec": {"template": {"metadata": {"annotations": {(annotations::CONFIG): change.value()}}}},
    });
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    taken(api.patch(&workload.name, &params, &Patch::Merge(patch)).await.map(drop))
}

/// Evicts a pod with this UID.
///
/// # Errors
/// If the API server refuses it for another reason than a `PodDisruptionBudget`.
pub async fn evict(client: &Client, namespace: &str, name: &str, uid: &str) -> Result<Taken, kube::Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    let params = EvictParams {
        delete_options: Some(DeleteParams::default().preconditions(preconditions)),
        post_options: PostParams::default(),
    };
    taken(api.evict(name, &params).await.map(drop))
}

fn taken(result: Result<(), kube::Error>) -> Result<Taken, kube::Error> {
    match result {
        Ok(()) => Ok(Taken::Done),
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(Taken::Changed),
        Err(kube::Error::Api(status)) if status.code == 429 => Ok(Taken::Refused(status.message)),
        Err(error) => Err(error),
    }
}
