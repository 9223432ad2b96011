//! All that is known of namespaces and their Instrumentations, as one snapshot.

mod instrumentations;

use std::{collections::HashMap, sync::Arc};

pub use instrumentations::Instrumentations;

use super::{
    compiled::Compiled,
    language::{LANGUAGES, Language},
    limits::Limits,
    reason::ObjectName,
};
use otel_webhook_api::AllowedNamespaces;

/// An Instrumentation as it is stored: ready for use, or with what is wrong with it.
#[derive(Clone, Debug)]
pub enum Stored {
    /// It can be used.
    Ready(Arc<Compiled>),
    /// It exists, but cannot be used.
    Invalid {
        /// Its namespace and name.
        name: ObjectName,
        /// A sentence that names the field.
        problem: Arc<str>,
        /// The namespaces that may use it once it can be used.
        allowed: AllowedNamespaces,
    },
}

/// What is known of a namespace.
#[derive(Clone, Debug, Default)]
pub struct Namespace {
    /// Whether the namespace itself was seen, and not only Instrumentations in it.
    pub is_listed: bool,
    /// Its annotations under the prefix, each by what follows it.
    pub annotations: Vec<(Box<str>, Box<str>)>,
    /// The pod security level that it enforces.
    pub enforced_level: Option<Box<str>>,
    /// Its Instrumentations.
    pub instrumentations: Instrumentations,
    /// Its LimitRanges, its ResourceQuotas, and its ServiceAccounts that may use few Secrets.
    pub limits: Limits,
}

/// A snapshot of everything that a decision depends on, but for the pod.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Namespaces by name; those that say nothing of use may be absent.
    pub namespaces: HashMap<Box<str>, Arc<Namespace>>,
}

impl Stored {
    /// The Instrumentation, if it can be used for a language.
    ///
    /// # Errors
    /// A sentence that names the field for which it cannot.
    pub fn usable_for(&self, language: &Language) -> Result<&Arc<Compiled>, &str> {
        match self {
            Self::Ready(ready) => match ready.problem(language) {
                None => Ok(ready),
                Some(problem) => Err(problem),
            },
            Self::Invalid { problem, .. } => Err(problem),
        }
    }

    /// For what it cannot be used, and why: a language, or all of them.
    pub fn problems(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Ready(ready) => {
                LANGUAGES.iter().filter_map(|row| Some((row.name, ready.problem(row)?))).collect()
            }
            Self::Invalid { problem, .. } => vec![("all", problem)],
        }
    }

    /// The namespaces besides its own that it allows to use it.
    pub fn allowed(&self) -> &AllowedNamespaces {
        match self {
            Self::Ready(ready) => &ready.allowed,
            Self::Invalid { allowed, .. } => allowed,
        }
    }

    /// Its namespace and name.
    pub fn name(&self) -> &ObjectName {
        match self {
            Self::Ready(ready) => &ready.name,
            Self::Invalid { name, .. } => name,
        }
    }
}

impl Namespace {
    /// Takes what a namespace says itself; the objects in it stay.
    pub fn take(&mut self, said: &Self) {
        self.is_listed = said.is_listed;
        self.annotations.clone_from(&said.annotations);
        self.enforced_level.clone_from(&said.enforced_level);
    }

    /// Whether nothing is known that a decision could depend on.
    pub fn is_empty(&self) -> bool {
        !self.is_listed && self.instrumentations.is_empty() && self.limits.is_empty()
    }
}

impl Catalogue {
    /// A namespace, if anything is known of it.
    pub fn namespace(&self, name: &str) -> Option<&Namespace> {
        self.namespaces.get(name).map(|namespace| &**namespace)
    }

    /// Whether a namespace itself was seen.
    pub fn is_listed(&self, name: &str) -> bool {
        self.namespace(name).is_some_and(|known| known.is_listed)
    }

    /// The same with what a namespace says itself.
    #[must_use]
    pub fn with(&self, name: &str, said: &Namespace) -> Self {
        let mut catalogue = self.clone();
        let known = catalogue.namespaces.entry(name.into()).or_default();
        Arc::make_mut(known).take(said);
        catalogue
    }

    /// How many Instrumentations there are.
    pub fn instrumentation_count(&self) -> usize {
        self.namespaces.values().map(|namespace| namespace.instrumentations.len()).sum()
    }
}
