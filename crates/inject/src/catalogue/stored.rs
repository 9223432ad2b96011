//! An Instrumentation as it is stored.

use std::sync::Arc;

use crate::{
    compiled::{Compiled, Shared},
    held::{COUNTS, Held},
    language::{LANGUAGES, Language},
    reason::ObjectName,
};
use otel_webhook_api::AllowedNamespaces;

/// An Instrumentation as it is stored: compiled, or with its error.
#[derive(Clone, Debug)]
pub enum Stored {
    /// It can be used.
    Ready(Arc<Compiled>),
    /// It exists, but cannot be used.
    Invalid {
        /// Its namespace and name.
        name: ObjectName,
        /// A message that names the field.
        problem: Arc<str>,
        /// The namespaces that it allows to use it.
        allowed: AllowedNamespaces,
        /// Whether its annotation pauses its use.
        is_paused: bool,
    },
}

impl Held for Stored {
    fn held(&self) -> usize {
        match self {
            Self::Ready(ready) => ready.held(),
            Self::Invalid { name, problem, allowed, .. } => {
                name.held() + COUNTS + problem.len() + allowed.held()
            }
        }
    }
}

impl Stored {
    /// The Instrumentation, if it can be used for a language.
    ///
    /// # Errors
    /// A message that names the invalid field.
    pub fn usable_for(&self, language: &Language) -> Result<&Arc<Compiled>, &str> {
        match self {
            Self::Ready(ready) => match ready.problem(language) {
                None => Ok(ready),
                Some(problem) => Err(problem),
            },
            Self::Invalid { problem, .. } => Err(problem),
        }
    }

    /// The bytes that are charged for it in a store: a function of the object alone. What several share is charged to
    /// each.
    pub fn charge(&self, shared: &Shared) -> u64 {
        /// What the store has of it in addition: its entries in tables.
        const ENTRIES: usize = 384;
        let (compared, defaults) = match self {
            Self::Ready(ready) => (ready.compared(), ready.held_by_defaults(shared)),
            Self::Invalid { .. } => (0, 0),
        };
        (ENTRIES + self.held() + compared - defaults) as u64
    }

    /// The languages for which it cannot be used, and why; "all" for every language.
    pub fn problems(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Ready(ready) => {
                LANGUAGES.iter().filter_map(|row| Some((row.name, ready.problem(row)?))).collect()
            }
            Self::Invalid { problem, .. } => vec![("all", problem)],
        }
    }

    /// The other namespaces that it allows to use it.
    pub fn allowed(&self) -> &AllowedNamespaces {
        match self {
            Self::Ready(ready) => &ready.allowed,
            Self::Invalid { allowed, .. } => allowed,
        }
    }

    /// Whether its annotation `otel-webhook/paused` pauses its use.
    pub fn is_paused(&self) -> bool {
        match self {
            Self::Ready(ready) => ready.is_paused,
            Self::Invalid { is_paused, .. } => *is_paused,
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
