//! Owners in a directory or a stream of documents.

use std::collections::HashMap;

use serde_json::Value;

use otel_webhook_inject::workload::{self, Lookup, Owner, OwnerKind, OwnerQuery, Owners};

/// ReplicaSets and Jobs with their owners.
#[derive(Clone, Debug, Default)]
pub struct OwnerBook(HashMap<(OwnerKind, Box<str>, Box<str>), Vec<Owner>>);

impl OwnerBook {
    /// Adds an object.
    pub fn put(&mut self, kind: OwnerKind, object: &Value) {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().into();
        self.0.insert((kind, text("namespace"), text("name")), owners_of(object));
    }
}

impl Owners for OwnerBook {
    /// Objects that the source does not contain do not exist.
    fn look_up(&self, query: OwnerQuery<'_>) -> Lookup {
        let key = (query.kind, query.namespace.into(), query.name.into());
        self.0.get(&key).map_or(Lookup::Absent, |owners| Lookup::Known(owners.clone()))
    }
}

/// Returns the owner references of an object.
pub fn owners_of(object: &Value) -> Vec<Owner> {
    let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    workload::kept(references.map(|reference| {
        let text = |field: &str| reference[field].as_str().unwrap_or_default().into();
        Owner {
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            controller: reference["controller"].as_bool().unwrap_or_default(),
        }
    }))
}
