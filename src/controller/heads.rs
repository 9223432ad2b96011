//! What is used of Instrumentations and namespaces beside their specification: metadata and status.

use std::collections::{BTreeMap, HashMap};

use futures::{StreamExt, stream::BoxStream};
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Client,
    api::ApiResource,
    runtime::{watcher, watcher::Event},
};
use serde_json::Value;

use super::{
    reduced::{Head, Metadata},
    watches,
};
use crate::scope::Scope;
use otel_webhook_api::Instrumentation;
use otel_webhook_fleet::restart::annotations;

/// Objects of one kind, by a watch.
pub struct Watched<K, V> {
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    /// The objects of a list in progress.
    listing: HashMap<String, V>,
    objects: HashMap<String, V>,
    is_listed: bool,
    kind: &'static str,
    reduce: fn(K) -> Option<(String, V)>,
}

/// An Instrumentation.
#[derive(Clone, Debug, PartialEq)]
pub struct InstrumentationHead {
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Its generation.
    pub generation: i64,
    /// Its UID.
    pub uid: String,
    /// Its annotation about restarts.
    pub consent: Option<String>,
    /// Its annotation that resumes restarts.
    pub resume: Option<String>,
    /// Its status, as text: a document needs ten times the memory.
    status: Box<str>,
}

/// A namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamespaceHead {
    labels: BTreeMap<String, String>,
    /// Its annotation about restarts.
    pub consent: Option<String>,
}

/// The Instrumentations, by `namespace/name`.
pub type Instrumentations = Watched<Head, InstrumentationHead>;

/// The namespaces, by their names.
pub type Namespaces = Watched<Metadata, NamespaceHead>;

impl<K: Clone + Send + 'static, V: PartialEq> Watched<K, V> {
    /// Returns whether all objects are known.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Returns the objects by their names.
    pub fn objects(&self) -> &HashMap<String, V> {
        &self.objects
    }

    /// Waits for an event. Returns whether something has changed.
    pub async fn step(&mut self) -> bool {
        match self.events.next().await {
            Some(Ok(event)) => self.take(event),
            Some(Err(error)) => {
                tracing::warn!(kind = self.kind, %error, "a watch failed; retrying");
                false
            }
            // Watches have no end.
            None => std::future::pending().await,
        }
    }

    fn take(&mut self, event: Event<K>) -> bool {
        let reduce = self.reduce;
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => self.listing.extend(reduce(object)),
            Event::InitDone => {
                self.objects = std::mem::take(&mut self.listing);
                self.is_listed = true;
                return true;
            }
            Event::Apply(object) => {
                let Some((name, value)) = reduce(object) else { return false };
                let is_changed = self.objects.get(&name) != Some(&value);
                self.objects.insert(name, value);
                return is_changed;
            }
            Event::Delete(object) => {
                return reduce(object).is_some_and(|(name, _)| self.objects.remove(&name).is_some());
            }
        }
        false
    }
}

impl Instrumentations {
    /// Begins to watch.
    pub fn watch(client: &Client, scope: &Scope) -> Self {
        // Specifications are in the same pages, and may be large.
        let config = watcher::Config::default().page_size(50);
        let events = watches::watch(client, scope, ApiResource::erase::<Instrumentation>(&()), config);
        Self::new(events, "Instrumentation", |head| {
            let ObjectMeta { namespace, name, uid, annotations, creation_timestamp, generation, .. } =
                head.metadata;
            let mut set = annotations.unwrap_or_default();
            let known = InstrumentationHead {
                created: creation_timestamp.map(|time| time.0),
                generation: generation.unwrap_or_default(),
                uid: uid.unwrap_or_default(),
                consent: set.remove(annotations::RESTART),
                resume: set.remove(annotations::RESUME),
                status: head.status.unwrap_or_default().to_string().into(),
            };
            Some((format!("{}/{}", namespace?, name?), known))
        })
    }

    /// Returns when each was created.
    pub fn created(&self) -> HashMap<String, Timestamp> {
        let known = self.objects.iter();
        known.filter_map(|(name, head)| Some((name.clone(), head.created?))).collect()
    }

    /// Notes what was written to the status, before the watch tells it.
    pub fn wrote(&mut self, name: &str, status: &Value) {
        if let Some(head) = self.objects.get_mut(name) {
            head.status = status.to_string().into();
        }
    }
}

impl InstrumentationHead {
    /// Returns the status; null if there is none.
    pub fn status(&self) -> Value {
        serde_json::from_str(&self.status).unwrap_or_default()
    }
}

impl Namespaces {
    /// Begins to watch.
    pub fn watch(client: &Client, scope: &Scope) -> Self {
        let config = watcher::Config::default().page_size(500);
        let events = watches::watch(client, scope, ApiResource::erase::<Namespace>(&()), config);
        Self::new(events, "Namespace", |namespace: Metadata| {
            let ObjectMeta { name, labels, annotations, .. } = namespace.metadata;
            let consent = annotations.unwrap_or_default().remove(annotations::RESTART);
            Some((name?, NamespaceHead { labels: labels.unwrap_or_default(), consent }))
        })
    }

    /// Returns the labels of a namespace.
    pub fn labels(&self, name: &str) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        self.objects.get(name).map_or(&NONE, |namespace| &namespace.labels)
    }
}

impl<K, V> Watched<K, V> {
    /// Returns the objects of a watch, each reduced when it arrives to its name and what is kept.
    pub fn new(
        events: BoxStream<'static, watcher::Result<Event<K>>>,
        kind: &'static str,
        reduce: fn(K) -> Option<(String, V)>,
    ) -> Self {
        Self { events, listing: HashMap::new(), objects: HashMap::new(), is_listed: false, kind, reduce }
    }
}
