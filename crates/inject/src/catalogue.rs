//! The snapshot of namespaces and their Instrumentations.

mod instrumentations;
mod stored;

use std::{collections::HashMap, sync::Arc};

pub use instrumentations::Instrumentations;
pub use stored::Stored;

use super::{
    cluster::Cluster, compiled::Compiled, language::is_read_as_label, limits::Limits, pause::Pause,
    reason::ObjectName, selector::Labels,
};
use otel_webhook_api::ANNOTATION_PREFIX;

/// A namespace.
#[derive(Clone, Debug, Default)]
pub struct Namespace {
    /// Whether the namespace itself was seen, and not only objects in it.
    pub is_listed: bool,
    /// Its annotations with the prefix, by the rest of their keys.
    pub annotations: Vec<(Box<str>, Box<str>)>,
    /// Whether its annotation `otel-webhook/paused` pauses injection into its pods.
    pub is_paused: bool,
    /// Its annotation `otel-webhook/delivery`.
    pub delivery: Option<Box<str>>,
    /// Its annotations with default images, by the rest of their keys: the language.
    pub default_images: Vec<(Box<str>, Box<str>)>,
    /// Its labels that are read as annotations, by the rest of their keys.
    pub opt_in_labels: Vec<(Box<str>, Box<str>)>,
    /// The labels that a selector of namespaces can match.
    pub labels: NamespaceLabels,
    /// The enforced pod security level.
    pub enforced_level: Option<Box<str>>,
    /// The first user of its pods on OpenShift.
    pub first_user: Option<i64>,
    /// Its Instrumentations.
    pub instrumentations: Instrumentations,
    /// Its LimitRanges, ResourceQuotas, and ServiceAccounts with enforced mountable Secrets.
    pub limits: Limits,
}

/// A snapshot of everything that a decision depends on, except for the pod.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Namespaces by name; those without relevant data may be absent.
    pub namespaces: HashMap<Box<str>, Arc<Namespace>>,
    /// The nodes; `None` if they are not known.
    pub cluster: Option<Arc<Cluster>>,
    /// The namespace of the release, which can pause all injection; `None` without a cluster.
    pub release: Option<Box<str>>,
    /// The Lease of the release, if it pauses all injection.
    pub paused_lease: Option<ObjectName>,
}

impl Namespace {
    /// Stores the namespace itself; the objects in it stay.
    pub fn take(&mut self, said: &Self) {
        self.is_listed = said.is_listed;
        self.annotations.clone_from(&said.annotations);
        self.is_paused = said.is_paused;
        self.delivery.clone_from(&said.delivery);
        self.default_images.clone_from(&said.default_images);
        self.opt_in_labels.clone_from(&said.opt_in_labels);
        self.labels.clone_from(&said.labels);
        self.enforced_level.clone_from(&said.enforced_level);
        self.first_user = said.first_user;
    }

    /// Whether it has no data that a decision could depend on.
    pub fn is_empty(&self) -> bool {
        !self.is_listed && self.instrumentations.is_empty() && self.limits.is_empty()
    }
}

impl Catalogue {
    /// A namespace, if it has any data.
    pub fn namespace(&self, name: &str) -> Option<&Namespace> {
        self.namespaces.get(name).map(|namespace| &**namespace)
    }

    /// Whether a namespace itself was seen.
    pub fn is_listed(&self, name: &str) -> bool {
        self.namespace(name).is_some_and(|known| known.is_listed)
    }

    /// The same with the data of the namespace itself.
    #[must_use]
    pub fn with(&self, name: &str, said: &Namespace) -> Self {
        let mut catalogue = self.clone();
        let known = catalogue.namespaces.entry(name.into()).or_default();
        Arc::make_mut(known).take(said);
        catalogue
    }

    /// What pauses injection by an Instrumentation into the pods of a namespace, if anything does: what pauses the most.
    pub fn paused(&self, namespace: &str, instrumentation: &Compiled) -> Option<Pause> {
        let whole = || {
            let is_paused = self.namespace(namespace).is_some_and(|known| known.is_paused);
            is_paused.then(|| Pause::Namespace(namespace.into()))
        };
        let one = || instrumentation.is_paused.then(|| Pause::Instrumentation(instrumentation.name.clone()));
        self.pauses_of_all().next().or_else(whole).or_else(one)
    }

    /// Everything that pauses injection: what pauses the most first, else by name.
    pub fn pauses(&self) -> Vec<Pause> {
        let narrower = self.namespaces.iter().flat_map(|(name, known)| {
            let is_whole = known.is_paused && self.release.as_ref() != Some(name);
            let used = known.instrumentations.iter().filter(|stored| stored.is_paused());
            let used = used.map(|stored| Pause::Instrumentation(stored.name().clone()));
            is_whole.then(|| Pause::Namespace(name.clone())).into_iter().chain(used)
        });
        let mut pauses: Vec<_> = self.pauses_of_all().chain(narrower).collect();
        pauses.sort();
        pauses
    }

    fn pauses_of_all(&self) -> impl Iterator<Item = Pause> {
        let release = self.release.iter();
        let release = release.filter(|name| self.namespace(name).is_some_and(|known| known.is_paused));
        release.cloned().map(Pause::Release).chain(self.paused_lease.iter().cloned().map(Pause::Lease))
    }

    /// How many Instrumentations there are.
    pub fn instrumentation_count(&self) -> usize {
        self.namespaces.values().map(|namespace| namespace.instrumentations.len()).sum()
    }
}

/// The label with the name of a namespace, which every namespace has.
const NAME: &str = "kubernetes.io/metadata.name";

/// The labels of a namespace, sorted by their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NamespaceLabels(Arc<[(Box<str>, Box<str>)]>);

impl NamespaceLabels {
    /// Returns the labels of a namespace, and the one with its name, which files may not have.
    pub fn of(name: &str, labels: impl IntoIterator<Item = (String, String)>) -> Self {
        let others = labels.into_iter().filter(|(key, _)| key != NAME);
        let named = (NAME.to_owned(), name.to_owned());
        let mut all: Vec<(Box<str>, Box<str>)> =
            others.chain([named]).map(|(key, value)| (key.into(), value.into())).collect();
        all.sort_unstable();
        Self(all.into())
    }

    /// Those that are read as annotations, by the rest of their keys.
    pub fn opt_in(&self) -> Vec<(Box<str>, Box<str>)> {
        let ours =
            self.0.iter().filter_map(|(key, value)| Some((key.strip_prefix(ANNOTATION_PREFIX)?, value)));
        let read = ours.filter(|(key, value)| is_read_as_label(key, value));
        read.map(|(key, value)| (key.into(), value.clone())).collect()
    }
}

impl Labels for NamespaceLabels {
    fn value(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(label, _)| (**label).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }
}
