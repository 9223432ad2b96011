//! An object of a watch, reduced while it is read.
//!
//! A page of a list is in memory completely, first as text and then as objects. Read as documents, objects would have
//! many times the size of their text. So `spec` and `status` stay text until their object is stored, one after the
//! other, and what is not used of the metadata is skipped.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};

use super::watched::Watched;
use otel_webhook_api::{
    ALLOWED_NAMESPACES, ANNOTATION_PREFIX, DELIVERY_ANNOTATION, Instrumentation,
    defaults::NAMESPACE_IMAGE_PREFIX,
};
use otel_webhook_inject::{limits::ENFORCE_MOUNTABLE_SECRETS, object::USERS};

/// An object with what is used of it.
#[derive(Clone, Debug, Deserialize)]
pub struct Seen {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    spec: Option<Box<RawValue>>,
    status: Option<Box<RawValue>>,
}

/// The used metadata.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    /// All: a selector of namespaces can match any of them.
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<Used>,
}

/// The used annotations.
struct Used(BTreeMap<String, String>);

fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let Metadata { name, namespace, resource_version, generation, labels, annotations } =
        Metadata::deserialize(deserializer)?;
    let annotations = annotations.map(|used| used.0);
    Ok(ObjectMeta {
        name,
        namespace,
        resource_version,
        generation,
        labels,
        annotations,
        ..ObjectMeta::default()
    })
}

fn is_used(key: &str) -> bool {
    key.starts_with(ANNOTATION_PREFIX)
        || key.starts_with(NAMESPACE_IMAGE_PREFIX)
        || [ALLOWED_NAMESPACES, DELIVERY_ANNOTATION, ENFORCE_MOUNTABLE_SECRETS, USERS].contains(&key)
}

impl<'de> Deserialize<'de> for Used {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Used;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Used, A::Error> {
                let mut used = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    if is_used(&key) {
                        used.insert(key, map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Used(used))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl Resource for Seen {
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

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Seen {
    /// A node with these labels and this status.
    pub fn of_node<S: Serialize>(metadata: ObjectMeta, status: &S) -> Self {
        let ObjectMeta { name, labels, resource_version, .. } = metadata;
        let metadata = ObjectMeta { name, labels, resource_version, ..ObjectMeta::default() };
        Self { metadata, spec: None, status: serde_json::value::to_raw_value(status).ok() }
    }

    /// Returns the namespace and the name.
    pub fn identity(&self) -> (String, String) {
        let ObjectMeta { namespace, name, .. } = &self.metadata;
        (namespace.clone().unwrap_or_default(), name.clone().unwrap_or_default())
    }

    /// Returns whether it has an annotation.
    pub fn has_annotation(&self, key: &str) -> bool {
        self.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(key))
    }

    /// Returns the size of the JSON of `spec`.
    pub fn size(&self) -> u64 {
        self.spec.as_ref().map_or(0, |spec| spec.get().len() as u64)
    }

    /// Returns the object as a document, with its type, which lists omit, and without the specification unless
    /// `with_spec`.
    pub fn document(&self, watched: Watched, with_spec: bool) -> Value {
        let api_version = match watched {
            Watched::Instrumentation => Instrumentation::api_version(&()),
            Watched::Namespace | Watched::Node | Watched::Limit(_) => "v1".into(),
        };
        let ObjectMeta { name, namespace, labels, annotations, generation, .. } = &self.metadata;
        let mut document = json!({
            "apiVersion": api_version,
            "kind": watched.kind(),
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": labels,
                "annotations": annotations,
                "generation": generation,
            },
        });
        let spec = self.spec.as_ref().filter(|_| with_spec);
        for (field, raw) in [("spec", spec), ("status", self.status.as_ref())] {
            if let Some(raw) = raw {
                document[field] = parsed(raw);
            }
        }
        document
    }
}

/// JSON that is nested too deep is not valid as the field: the error takes its place.
fn parsed(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_else(|error| error.to_string().into())
}
