//! Objects as lists and watches read them.
//!
//! A page of a list is in memory completely, first as text and then as objects. Read as documents, objects would have
//! many times the size of their text. So `spec` and `status` stay text until their object is stored, one after the
//! other. The record of who has set which field is skipped: it is most of the metadata of many pods, and in a small map
//! for each field.

use std::{borrow::Cow, collections::BTreeMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::{Resource, api::ApiResource, core::DynamicResourceScope};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An object: its metadata, and the rest unless metadata is all that is asked for.
#[derive(Clone, Debug, Deserialize)]
pub struct Reduced<const IS_METADATA_ALL: bool> {
    /// Its metadata.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Its specification.
    pub spec: Option<Box<RawValue>>,
    /// Its status.
    pub status: Option<Box<RawValue>>,
}

/// Rollouts of Argo, which have a pod template as Deployments do.
pub fn rollouts() -> ApiResource {
    ApiResource {
        group: "argoproj.io".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "argoproj.io/v1alpha1".to_owned(),
        kind: "Rollout".to_owned(),
        plural: "rollouts".to_owned(),
    }
}

/// Metadata. The API server is asked for nothing else.
pub type Metadata = Reduced<true>;

/// A whole object.
pub type Whole = Reduced<false>;

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

/// Reads what is kept of the metadata.
///
/// # Errors
/// If it is not metadata.
pub fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
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
