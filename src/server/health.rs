//! What has to be true before pods are sent here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The conditions of readiness. Shared by `Arc`.
#[derive(Debug, Default)]
pub struct Health {
    conditions: Mutex<Vec<Condition>>,
    shutting_down: AtomicBool,
}

/// One condition of readiness; unmet until it is set. Clones are the same condition.
#[derive(Clone, Debug)]
pub struct Condition {
    name: &'static str,
    unmet: &'static str,
    met: Arc<AtomicBool>,
}

impl Condition {
    /// Says whether the condition is met from now on.
    pub fn set(&self, met: bool) {
        self.met.store(met, Ordering::Release);
    }

    fn is_met(&self) -> bool {
        self.met.load(Ordering::Acquire)
    }
}

impl Health {
    /// Ready at once, as there are no conditions yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition. `name` is short (`store`); `unmet` says what is waited for.
    ///
    /// All conditions have to be added before the port opens, or it may be ready too early.
    pub fn condition(&self, name: &'static str, unmet: &'static str) -> Condition {
        let condition = Condition { name, unmet, met: Arc::new(AtomicBool::new(false)) };
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner).push(condition.clone());
        condition
    }

    /// Never ready again: the process is about to end.
    pub fn shut_down(&self) {
        self.shutting_down.store(true, Ordering::Release);
    }

    /// A line for each condition that is not met; none when ready.
    pub fn unmet(&self) -> Vec<String> {
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines: Vec<String> = conditions
            .iter()
            .filter(|condition| !condition.is_met())
            .map(|condition| format!("{}: {}", condition.name, condition.unmet))
            .collect();
        if self.shutting_down.load(Ordering::Acquire) {
            lines.push("shutdown: the process is ending".to_owned());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_has_to_be_met() {
        let health = Health::new();
        let store = health.condition("store", "Instrumentations are not listed yet");
        let certificate = health.condition("certificate", "there is no certificate yet");
        assert_eq!(
            health.unmet(),
            ["store: Instrumentations are not listed yet", "certificate: there is no certificate yet"]
        );
        store.set(true);
        certificate.clone().set(true);
        assert!(health.unmet().is_empty());
        store.set(false);
        assert_eq!(health.unmet(), ["store: Instrumentations are not listed yet"]);
    }

    #[test]
    fn a_process_that_ends_is_not_ready() {
        let health = Health::new();
        health.shut_down();
        assert_eq!(health.unmet(), ["shutdown: the process is ending"]);
    }
}
