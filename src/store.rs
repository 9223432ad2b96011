//! The store: Instrumentations, namespaces, LimitRanges, ResourceQuotas, ServiceAccounts and owners.
//!
//! One writer, any number of readers. A source (a directory, a stream of documents or a watch) adds objects and
//! publishes snapshots; a reader uses one snapshot for one review, without a lock.
//! See docs/adr/0003-one-store-two-sources.md.

pub mod cluster;
pub mod dir;
mod limits;
pub mod owners;
pub mod watch;

use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::Value;

use owners::OwnerBook;

use crate::{manifest, telemetry::Metrics};
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::{
    catalogue::{Catalogue, Namespace},
    compiled::Shared,
    limits::SharedItems,
    object::{self, Kind, kind_of},
};

/// The reading side.
#[derive(Clone, Debug, Default)]
pub struct Store(Arc<ArcSwap<Snapshot>>);

/// The state at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Namespaces and their Instrumentations.
    pub catalogue: Catalogue,
    /// Owners of the source; a watch has none, so that they are looked up.
    pub owners: OwnerBook,
}

impl Store {
    /// Returns the last published snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.0.load_full()
    }
}

/// The writing side.
#[derive(Debug)]
pub struct Writer {
    store: Store,
    images: DefaultImages,
    shared: Shared,
    shared_items: SharedItems,
    working: Snapshot,
    metrics: Option<Arc<Metrics>>,
}

impl Writer {
    /// Returns an empty store. `images` are for Instrumentations that specify none.
    pub fn new(images: DefaultImages) -> Self {
        Self {
            store: Store::default(),
            images,
            shared: Shared::default(),
            shared_items: SharedItems::default(),
            working: Snapshot::default(),
            metrics: None,
        }
    }

    /// Counts the published objects in the metrics.
    #[must_use]
    pub fn counted(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// Returns the reading side.
    pub fn store(&self) -> Store {
        self.store.clone()
    }

    /// Adds or replaces an object. Returns false for a kind that is not stored.
    pub fn put(&mut self, object: &Value) -> bool {
        let Some(kind) = kind_of(object) else {
            return false;
        };
        match kind {
            Kind::Instrumentation => self.put_instrumentation(object),
            Kind::Namespace => self.put_namespace(object),
            Kind::Owner(kind) => self.working.owners.put(kind, object),
            Kind::Limit(kind) => {
                self.put_limit(kind, object);
            }
        }
        true
    }

    /// Adds the object of a document, or the items of a list.
    ///
    /// `namespace` is the namespace of objects that specify none.
    pub fn put_document(&mut self, document: &Value, namespace: &str) {
        match manifest::items(document) {
            Some(items) => items.for_each(|item| self.put_document(&item, namespace)),
            None => {
                self.put(&object::located(document, namespace));
            }
        }
    }

    /// Removes an Instrumentation.
    pub fn forget_instrumentation(&mut self, namespace: &str, name: &str) {
        self.edit(namespace, |known| known.instrumentations.forget(name));
    }

    /// Removes the metadata of a namespace. The objects in it are removed separately.
    pub fn forget_namespace(&mut self, name: &str) {
        self.edit(name, |known| {
            known.take(&Namespace::default());
        });
    }

    /// Removes every Instrumentation that `is_kept` does not select, by namespace and name.
    pub fn keep_instrumentations(&mut self, keep: impl Fn(&str, &str) -> bool) {
        self.edit_all(|namespace, known| {
            known.instrumentations.retain(|stored| keep(namespace, &stored.name().name));
        });
    }

    /// Removes the metadata of namespaces that are not selected.
    pub fn keep_namespaces(&mut self, keep: impl Fn(&str) -> bool) {
        self.edit_all(|namespace, known| {
            if !keep(namespace) {
                known.take(&Namespace::default());
            }
        });
    }

    /// Removes everything, before a source adds it again.
    pub fn forget_all(&mut self) {
        self.working = Snapshot::default();
    }

    /// Publishes a snapshot.
    pub fn publish(&self) {
        if let Some(metrics) = &self.metrics {
            let catalogue = &self.working.catalogue;
            metrics.set_store(catalogue.instrumentation_count(), catalogue.namespaces.len());
        }
        self.store.0.store(Arc::new(self.working.clone()));
    }

    fn put_instrumentation(&mut self, object: &Value) {
        let stored = object::instrumentation(object, &self.images, &mut self.shared);
        for (language, problem) in stored.problems() {
            tracing::warn!(
                instrumentation = stored.name().to_string(),
                language,
                problem,
                "unusable Instrumentation"
            );
        }
        let namespace = stored.name().namespace.clone();
        self.edit(&namespace, |known| known.instrumentations.store(stored));
    }

    fn put_namespace(&mut self, object: &Value) {
        let (name, read) = object::namespace(object);
        self.edit(&name, |known| {
            known.take(&read);
        });
    }

    /// Changes one namespace. Snapshots share the entries, so that only this one is copied.
    fn edit(&mut self, name: &str, change: impl FnOnce(&mut Namespace)) {
        let namespaces = &mut self.working.catalogue.namespaces;
        let entry = Arc::make_mut(namespaces.entry(name.into()).or_default());
        change(entry);
        if entry.is_empty() {
            namespaces.remove(name);
        }
    }

    fn edit_all(&mut self, change: impl Fn(&str, &mut Namespace)) {
        self.working.catalogue.namespaces.retain(|name, namespace| {
            let entry = Arc::make_mut(namespace);
            change(name, entry);
            !entry.is_empty()
        });
    }
}
