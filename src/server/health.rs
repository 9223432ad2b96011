//! The readiness of the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The conditions of readiness. Shared by `Arc`.
#[derive(Debug, Default)]
pub struct Health {
    conditions: Mutex<Vec<Condition>>,
    shutting_down: AtomicBool,
}

/// One condition of readiness; unmet until it is set. Clones share the state.
#[derive(Clone, Debug)]
pub struct Condition {
    name: &'static str,
    unmet: &'static str,
    met: Arc<AtomicBool>,
}

impl Condition {
    /// Sets whether the condition is met.
    pub fn set(&self, met: bool) {
        self.met.store(met, Ordering::Release);
    }

    fn is_met(&self) -> bool {
        self.met.load(Ordering::Acquire)
    }
}

impl Health {
    /// Returns a state without conditions, which is ready.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition. `name` is short (`store`); `unmet` is the message while it is not met.
    ///
    /// All conditions have to be added before the port is opened; otherwise it may be ready too early.
    pub fn condition(&self, name: &'static str, unmet: &'static str) -> Condition {
        let condition = Condition { name, unmet, met: Arc::new(AtomicBool::new(false)) };
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner).push(condition.clone());
        condition
    }

    /// Makes the process not ready, for shutdown.
    pub fn shut_down(&self) {
        self.shutting_down.store(true, Ordering::Release);
    }

    /// Returns a line for each condition that is not met; none if ready.
    pub fn unmet(&self) -> Vec<String> {
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines: Vec<String> = conditions
            .iter()
            .filter(|condition| !condition.is_met())
            .map(|condition| format!("{}: {}", condition.name, condition.unmet))
            .collect();
        if self.shutting_down.load(Ordering::Acquire) {
            lines.push("shutdown: the process is shutting down".to_owned());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_requires_every_condition() {
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
    fn a_process_that_shuts_down_is_not_ready() {
        let health = Health::new();
        health.shut_down();
        assert_eq!(health.unmet(), ["shutdown: the process is shutting down"]);
    }
}
