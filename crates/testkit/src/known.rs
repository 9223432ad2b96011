//! Kubernetes objects as the decision knows them.
//!
//! The program has its own way from objects to a catalogue, in its store. Tests that start the
//! program or use its store show that the two agree.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use otel_webhook_api::{
    ALLOWED_NAMESPACES, ANNOTATION_PREFIX, AllowedNamespaces, InstrumentationSpec,
    defaults::DefaultImages,
    image,
    validation::{Unusable, unusable},
};
use otel_webhook_inject::{
    catalogue::{Catalogue, Namespace, Stored},
    compiled::{About, Compiled},
    limits::{Limit, LimitKind},
    reason::ObjectName,
    workload::{Lookup, Owner, OwnerKind, OwnerQuery, Owners},
};
use serde::Deserialize as _;
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
        match object["kind"].as_str().unwrap_or_default() {
            "Instrumentation" => {
                let stored = instrumentation(object, images);
                self.namespace(namespace).instrumentations.store(stored);
            }
            "Namespace" => {
                let known = self.namespace(name);
                known.is_listed = true;
                let annotations = strings(&metadata["annotations"]).into_iter();
                known.annotations = annotations
                    .filter_map(|(key, value)| {
                        Some((key.strip_prefix(ANNOTATION_PREFIX)?.into(), value.into()))
                    })
                    .collect();
                let level = &metadata["labels"]["pod-security.kubernetes.io/enforce"];
                known.enforced_level = level.as_str().map(Into::into);
            }
            "ReplicaSet" => self.owners.put(OwnerKind::ReplicaSet, object),
            "Job" => self.owners.put(OwnerKind::Job, object),
            kind => {
                if let Some(kind) = LimitKind::ALL.into_iter().find(|known| known.name() == kind) {
                    let limit = Limit::read(kind, object, &mut Vec::new());
                    self.namespace(namespace).limits.put(limit);
                }
            }
        }
    }

    fn namespace(&mut self, name: &str) -> &mut Namespace {
        Arc::make_mut(self.catalogue.namespaces.entry(name.into()).or_default())
    }
}

fn instrumentation(object: &Value, images: &DefaultImages) -> Stored {
    let metadata = &object["metadata"];
    let name =
        ObjectName { namespace: text(&metadata["namespace"]).into(), name: text(&metadata["name"]).into() };
    let about = About {
        annotations: strings(&metadata["annotations"]),
        blocked: image::blocked(object).map(str::to_owned).collect(),
    };
    let Unusable { at_all, for_languages } = unusable(object);
    let mut spec = object["spec"].clone();
    if spec.is_null() {
        spec = Value::Object(serde_json::Map::new());
    }
    for field in for_languages.keys() {
        spec[*field] = Value::Null;
    }
    let spec = at_all.map_or_else(
        || InstrumentationSpec::deserialize(&spec).map_err(|error| format!("spec: {error}")),
        Err,
    );
    let compiled = spec
        .and_then(|spec| Compiled::new(name.clone(), metadata["generation"].as_i64(), &about, &spec, images));
    match compiled {
        Ok(compiled) => Stored::Ready(Arc::new(compiled.unusable_for(&for_languages))),
        Err(problem) => {
            let allowed =
                AllowedNamespaces::new(about.annotations.get(ALLOWED_NAMESPACES).map(String::as_str));
            Stored::Invalid { name, problem: problem.into(), allowed }
        }
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

fn strings(map: &Value) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    entries.filter_map(text).collect()
}
