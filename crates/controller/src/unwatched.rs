//! What is not known of pods that depend on namespaces which are not watched.

use otel_webhook_fleet::next::{Doubts, Separated};
use otel_webhook_inject::{Finding, Settings};
use otel_webhook_store::{
    scope::Scope,
    unread::{Missing, Unread, Unsure},
};

/// The namespaces that are not watched.
pub struct Unwatched(Unread);

impl Unwatched {
    /// Returns those outside of a scope.
    pub fn of(scope: &Scope, settings: &Settings) -> Self {
        let listed = match scope {
            Scope::Cluster => None,
            Scope::Namespaces(namespaces) => Some(namespaces.iter().cloned().collect()),
        };
        Self(Unread { listed, default: settings.default_instrumentation.clone(), ..Unread::default() })
    }
}

impl Doubts for Unwatched {
    fn separate(&self, namespace: &str, findings: Vec<Finding>) -> Separated {
        let (certain, unsure) = self.0.divide(namespace, findings);
        let unknown = unsure.into_iter().map(|Unsure { language, missing }| (language, why(&missing)));
        let others = self.0.opt_ins(namespace).map(|missing| why(&missing));
        Separated { certain, unknown: unknown.collect(), others }
    }

    fn configurations(&self) -> Option<&str> {
        None
    }
}

fn why(missing: &Missing) -> String {
    match missing {
        Missing::Instrumentations(namespace) => {
            format!("the Instrumentations of namespace \"{namespace}\" are not among --namespaces")
        }
        other => other.to_string(),
    }
}
