//! Kubernetes objects as the decision knows them.
//!
//! The program's store does the same, and publishes snapshots next to it.

use std::{collections::HashMap, sync::Arc};

use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::{
    catalogue::{Catalogue, Namespace},
    compiled::Shared,
    limits::Limit,
    object::{self, Kind},
    workload::{Lookup, Owner, OwnerKind, OwnerQuery, Owners},
};
use serde_json::Value;

/// What is known around a pod.
#[derive(Debug, Default)]
pub struct Known {
    /// Namespaces, Instrumentations and limits.
    pub catalogue: Catalogue,
    /// ReplicaSets and Jobs.
    pub owners: KnownOwners,
}

/// The owners of ReplicaSets and Jobs. One that is not there does not exist.
#[derive(Debug, Default)]
pub struct KnownOwners(HashMap<(OwnerKind, String, String), Vec<Owner>>);

impl Known {
    /// What these objects say. `images` are used where an Instrumentation names none.
    pub fn of<'o>(objects: impl IntoIterator<Item = &'o Value>, images: &DefaultImages) -> Self {
        let mut known = Self::default();
        objects.into_iter().for_each(|object| known.put(object, images));
        known
    }

    fn put(&mut self, object: &Value, images: &DefaultImages) {
        let metadata = &object["metadata"];
        let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
        match object::kind_of(object) {
            Some(Kind::Instrumentation) => {
                let stored = object::instrumentation(object, images, &mut Shared::default());
                self.namespace(namespace).instrumentations.store(stored);
            }
            Some(Kind::Namespace) => self.namespace(name).take(&object::namespace(object).1),
            Some(Kind::Owner(kind)) => self.owners.put(kind, object),
            Some(Kind::Limit(kind)) => {
                let limit = Limit::read(kind, object, &mut Vec::new());
                self.namespace(namespace).limits.put(limit);
            }
            Some(Kind::Node) | None => {}
        }
    }

    fn namespace(&mut self, name: &str) -> &mut Namespace {
        Arc::make_mut(self.catalogue.namespaces.entry(name.into()).or_default())
    }
}

impl KnownOwners {
    fn put(&mut self, kind: OwnerKind, object: &Value) {
        let metadata = &object["metadata"];
        let references = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owner = |reference: &Value| Owner {
            kind: text(&reference["kind"]).into(),
            name: text(&reference["name"]).into(),
            uid: text(&reference["uid"]).into(),
            controller: reference["controller"].as_bool().unwrap_or_default(),
        };
        let key = (kind, text(&metadata["namespace"]).to_owned(), text(&metadata["name"]).to_owned());
        self.0.insert(key, references.map(owner).collect());
    }
}

impl Owners for KnownOwners {
    fn look_up(&self, query: OwnerQuery<'_>) -> Lookup {
        let key = (query.kind, query.namespace.to_owned(), query.name.to_owned());
        self.0.get(&key).map_or(Lookup::Absent, |owners| Lookup::Known(owners.clone()))
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
