//! What is known of Instrumentations, namespaces and what bounds them, and owners.
//!
//! One writer, any number of readers. A source (a directory, a stream of
//! documents or a watch) puts objects in and publishes; readers take the last
//! snapshot without a lock and keep it for one review.

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

/// All that is known at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Namespaces and their Instrumentations.
    pub catalogue: Catalogue,
    /// Owners that the source holds itself; a watch holds none and asks instead.
    pub owners: OwnerBook,
}

impl Store {
    /// The last published snapshot.
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
    /// An empty store. `images` are taken where an Instrumentation names none.
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

    /// Shows in the metrics what is published.
    #[must_use]
    pub fn counted(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// The reading side.
    pub fn store(&self) -> Store {
        self.store.clone()
    }

    /// Takes an object in, or the newer state of one. False for a kind that is of no use.
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

    /// Takes in what a document of a stream holds: the object itself, or the items of a list.
    ///
    /// `namespace` is that of objects which name none.
    pub fn put_document(&mut self, document: &Value, namespace: &str) {
        match manifest::items(document) {
            Some(items) => items.for_each(|item| self.put_document(&item, namespace)),
            None => {
                self.put(&object::located(document, namespace));
            }
        }
    }

    /// Takes an Instrumentation out.
    pub fn forget_instrumentation(&mut self, namespace: &str, name: &str) {
        self.edit(namespace, |known| known.instrumentations.forget(name));
    }

    /// Forgets what a namespace says itself; the objects in it go one by one.
    pub fn forget_namespace(&mut self, name: &str) {
        self.edit(name, |known| {
            known.take(&Namespace::default());
        });
    }

    /// Takes out every Instrumentation that is not to be kept, by namespace and name.
    pub fn keep_instrumentations(&mut self, keep: impl Fn(&str, &str) -> bool) {
        self.edit_all(|namespace, known| {
            known.instrumentations.retain(|stored| keep(namespace, &stored.name().name));
        });
    }

    /// Forgets what namespaces say that are not to be kept.
    pub fn keep_namespaces(&mut self, keep: impl Fn(&str) -> bool) {
        self.edit_all(|namespace, known| {
            if !keep(namespace) {
                known.take(&Namespace::default());
            }
        });
    }

    /// Forgets everything, before a source tells it anew.
    pub fn forget_all(&mut self) {
        self.working = Snapshot::default();
    }

    /// Shows readers what was taken in.
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
            tracing::warn!(instrumentation = %stored.name(), language, problem, "an Instrumentation cannot be used");
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

    /// Changes what is known of one namespace. A reader's snapshot shares the
    /// entries, so only the one that changes is copied.
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
