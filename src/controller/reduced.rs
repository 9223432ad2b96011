//! Objects as they are read: without the record of who has set which field. It is most of the metadata of many pods,
//! and in a small map for each field.

use std::{borrow::Cow, collections::BTreeMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::{Resource, api::ApiResource, core::DynamicResourceScope};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

/// An object: its metadata, and its status unless metadata is all that is asked for.
#[derive(Clone, Debug, Deserialize)]
pub struct Reduced<const IS_METADATA_ALL: bool> {
    /// Its metadata.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Its status.
    pub status: Option<Value>,
}

/// Metadata. The API server is asked for nothing else.
pub type Metadata = Reduced<true>;

/// An object without its specification.
pub type Head = Reduced<false>;

/// A pod with what its states depend on.
#[derive(Deserialize)]
struct WholePod {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    spec: Value,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Value,
    conditions: Value,
    init_container_statuses: Value,
    container_statuses: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let kept = Kept::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: kept.name,
        namespace: kept.namespace,
        uid: kept.uid,
        resource_version: kept.resource_version,
        generation: kept.generation,
        creation_timestamp: kept.creation_timestamp,
        deletion_timestamp: kept.deletion_timestamp,
        labels: kept.labels,
        annotations: kept.annotations,
        owner_references: kept.owner_references,
        ..ObjectMeta::default()
    })
}

/// Reads the JSON of a pod.
///
/// # Errors
/// If it is not a pod.
pub fn pod(text: &str) -> Result<Value, serde_json::Error> {
    let WholePod { metadata, spec, status } = serde_json::from_str(text)?;
    Ok(json!({"metadata": metadata, "spec": spec, "status": status}))
}

impl<const IS_METADATA_ALL: bool> Resource for Reduced<IS_METADATA_ALL> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn api_version(of: &ApiResource) -> Cow<'_, str> {
        of.api_version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }

    fn metadata_api() -> bool {
        IS_METADATA_ALL
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
