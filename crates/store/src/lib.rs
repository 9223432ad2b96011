//! The store: Instrumentations, namespaces, LimitRanges, ResourceQuotas, ServiceAccounts and owners.
//!
//! One writer, any number of readers. A source (a directory, a stream of documents or a watch) adds objects and
//! publishes snapshots; a reader uses one snapshot for one review, without a lock.
//! See docs/adr/0003-one-store-two-sources.md.
//!
//! What reads the sources is here too, for whoever else reads a cluster or a file:
//!
//! - [`manifest`]: streams of YAML and JSON documents, read and written
//! - [`api_client`]: clients of the API server, with deadlines and bounded pages
//! - [`scope`], [`reduced`]: watches, and objects as lists and watches read them
//! - [`served`]: the version in which Instrumentations are stored
//! - [`unread`]: what a decision depends on and cannot be read

pub mod api_client;
mod budget;
pub mod cluster;
pub mod dir;
mod heads;
mod limits;
pub mod manifest;
mod nodes;
pub mod owners;
pub mod reduced;
pub mod scope;
pub mod served;
pub mod unread;
pub mod watch;

use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::Value;

use budget::{Age, Budget, Exceeding};
use heads::NamespaceHead;
pub use heads::{Heads, InstrumentationHead};
use owners::OwnerBook;

use otel_webhook_api::{AllowedNamespaces, Version, defaults::DefaultImages};
use otel_webhook_inject::{
    catalogue::{Catalogue, Namespace, NamespaceLabels, Stored},
    compiled::Shared,
    limits::SharedItems,
    object::{self, Kind, kind_of},
    reason::ObjectName,
    size::{SizeLimits, size_of},
};
use otel_webhook_telemetry::Metrics;

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
    /// What the controller uses; empty for all others.
    pub heads: Arc<Heads>,
    /// The version in which Instrumentations are read and written, by a watch.
    pub version: Version,
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
    budget: Budget,
    /// Why what exceeds the share of its namespace is not used.
    exceeded: Arc<str>,
    /// Whether labels of namespaces can be selected.
    with_labels: bool,
    /// Whether heads are stored.
    with_heads: bool,
    metrics: Option<Arc<Metrics>>,
}

impl Writer {
    /// Returns an empty store. `images` are for Instrumentations that specify none.
    pub fn new(images: DefaultImages) -> Self {
        Self {
            store: Store::default(),
            shared: Shared::with_defaults(&images),
            images,
            shared_items: SharedItems::default(),
            working: Snapshot::default(),
            budget: Budget::default(),
            exceeded: SizeLimits::default().exceeded().into(),
            with_labels: true,
            with_heads: false,
            metrics: None,
        }
    }

    /// Sets how large Instrumentations may be, and the namespaces that come first.
    #[must_use]
    pub fn with_size_limits(
        self,
        limits: SizeLimits,
        reserved: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Self {
        let mut budget = Budget::new(limits);
        reserved.into_iter().for_each(|namespace| budget.reserve(namespace.as_ref()));
        Self { budget, exceeded: limits.exceeded().into(), ..self }
    }

    /// Sets whether the labels of namespaces are stored. Only the Instrumentations in the namespace of the default one
    /// select them.
    #[must_use]
    pub fn with_labels(self, with_labels: bool) -> Self {
        Self { with_labels, ..self }
    }

    /// Stores what the controller uses, too.
    #[must_use]
    pub fn with_heads(self) -> Self {
        Self { with_heads: true, ..self }
    }

    /// Sets the namespace of the release, which can pause all injection.
    #[must_use]
    pub fn with_release(mut self, namespace: Option<&str>) -> Self {
        self.working.catalogue.release = namespace.map(Into::into);
        self
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
            Kind::Instrumentation => self.put_instrumentation(object, size_of(object)),
            Kind::Namespace => self.put_namespace(object),
            Kind::Owner(kind) => self.working.owners.put(kind, object),
            Kind::Limit(kind) => {
                self.put_limit(kind, object);
            }
            Kind::Node => self.put_node_of_file(object),
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

    /// Adds or replaces an Instrumentation. `size` is that of its specification, which may be missing if it is too
    /// large to be used.
    pub fn put_instrumentation(&mut self, object: &Value, size: u64) {
        let name = object::name_of(object);
        let too_large = self.budget.limits().check_one(size).err();
        let stored = match &too_large {
            None => object::instrumentation(object, &self.images, &mut self.shared),
            Some(problem) => object::unusable_instrumentation(object, &format!("spec: {problem}")),
        };
        if self.with_heads {
            let head = Arc::new(InstrumentationHead::of(object));
            self.heads().instrumentations.insert(name.clone(), head);
        }
        let charge = stored.charge(&self.shared);
        let exceeding = self.budget.put(&name.namespace, Age::of(object), charge, too_large.is_some());
        if exceeding.iter().all(|one| one.name != name) {
            self.complain(&stored);
        }
        self.edit(&name.namespace, |known| known.instrumentations.store(stored));
        for Exceeding { name, is_remembered } in exceeding {
            if is_remembered {
                self.exceed(&name);
            } else {
                self.heads().instrumentations.remove(&name);
                self.edit(&name.namespace, |known| known.instrumentations.forget(&name.name));
            }
        }
    }

    /// Replaces an Instrumentation that exceeds the share of its namespace by the reason.
    fn exceed(&mut self, name: &ObjectName) {
        let known = self.working.catalogue.namespace(&name.namespace);
        let known = known.and_then(|known| known.instrumentations.get(&name.name));
        let is_paused = known.is_some_and(Stored::is_paused);
        let problem = Arc::clone(&self.exceeded);
        // The namespaces that it allows may take as much memory as the rest of it.
        let allowed = AllowedNamespaces::default();
        let stored = Stored::Invalid { name: name.clone(), problem, allowed, is_paused };
        self.complain(&stored);
        self.edit(&name.namespace, |known| known.instrumentations.store(stored));
    }

    /// Returns whether an Instrumentation of this size can be used.
    pub fn fits(&self, size: u64) -> bool {
        self.budget.limits().check_one(size).is_ok()
    }

    /// Returns whether Instrumentations that are not used, since there was no memory for them, have to be read again,
    /// since there is now.
    pub fn has_room_for_unused(&mut self) -> bool {
        self.budget.has_room_for_unused()
    }

    /// Returns the bytes that each Instrumentation of a namespace is charged, the largest first.
    pub fn charges(&self, namespace: &str) -> Vec<(&str, u64)> {
        self.budget.charges(namespace)
    }

    /// Removes an Instrumentation.
    pub fn forget_instrumentation(&mut self, namespace: &str, name: &str) {
        let full_name = ObjectName { namespace: namespace.into(), name: name.into() };
        self.budget.forget(&full_name);
        self.heads().instrumentations.remove(&full_name);
        self.edit(namespace, |known| known.instrumentations.forget(name));
    }

    /// Removes the metadata of a namespace. The objects in it are removed separately.
    pub fn forget_namespace(&mut self, name: &str) {
        self.heads().namespaces.remove(name);
        self.edit(name, |known| {
            known.take(&Namespace::default());
        });
    }

    /// Removes every Instrumentation that `is_kept` does not select, by namespace and name.
    pub fn keep_instrumentations(&mut self, keep: impl Fn(&str, &str) -> bool) {
        self.budget.retain(&keep);
        self.heads().instrumentations.retain(|name, _| keep(&name.namespace, &name.name));
        self.edit_all(|namespace, known| {
            known.instrumentations.retain(|stored| keep(namespace, &stored.name().name));
        });
    }

    /// Removes the metadata of namespaces that are not selected.
    pub fn keep_namespaces(&mut self, keep: impl Fn(&str) -> bool) {
        self.heads().namespaces.retain(|name, _| keep(name));
        self.edit_all(|namespace, known| {
            if !keep(namespace) {
                known.take(&Namespace::default());
            }
        });
    }

    /// Removes everything, before a source adds it again.
    pub fn forget_all(&mut self) {
        let release = self.working.catalogue.release.take();
        self.working = Snapshot::default();
        self.working.catalogue.release = release;
        self.budget.clear();
    }

    /// Sets the version in which Instrumentations are read and written.
    pub fn set_version(&mut self, version: Version) {
        self.working.version = version;
    }

    /// Sets the Lease of the release that pauses all injection; none if it does not. Returns whether that is a change.
    pub fn set_paused_lease(&mut self, lease: Option<ObjectName>) -> bool {
        let is_changed = self.working.catalogue.paused_lease != lease;
        self.working.catalogue.paused_lease = lease;
        is_changed
    }

    /// Publishes a snapshot.
    pub fn publish(&self) {
        if let Some(metrics) = &self.metrics {
            let catalogue = &self.working.catalogue;
            metrics.set_store(catalogue.instrumentation_count(), catalogue.namespaces.len());
            metrics.set_too_large(self.budget.too_large());
            metrics.set_paused(&catalogue.pauses());
        }
        self.store.0.store(Arc::new(self.working.clone()));
    }

    /// Logs why an Instrumentation cannot be used, unless that was published before.
    fn complain(&self, stored: &Stored) {
        let (published, name) = (self.store.snapshot(), stored.name());
        let known = published.catalogue.namespace(&name.namespace);
        let known = known.and_then(|known| known.instrumentations.get(&name.name));
        let known = known.map(Stored::problems).unwrap_or_default();
        for problem in stored.problems().into_iter().filter(|problem| !known.contains(problem)) {
            let (language, problem) = problem;
            tracing::warn!(instrumentation = name.to_string(), language, problem, "unusable Instrumentation");
        }
    }

    fn put_namespace(&mut self, object: &Value) {
        let (name, mut read) = object::namespace(object);
        if !self.with_labels {
            read.labels = NamespaceLabels::default();
        }
        if self.with_heads {
            self.heads().namespaces.insert(name.to_string().into(), Arc::new(NamespaceHead::of(object)));
        }
        self.edit(&name, |known| {
            known.take(&read);
        });
    }

    fn heads(&mut self) -> &mut Heads {
        Arc::make_mut(&mut self.working.heads)
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
