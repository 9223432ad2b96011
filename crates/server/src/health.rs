//! The readiness and the liveness of the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long a loop may make no progress. Each request to the API server ends after a fraction of it.
const STANDSTILL: Duration = Duration::from_mins(5);

/// The conditions of readiness, and the loops that have to make progress. Shared by `Arc`.
#[derive(Debug, Default)]
pub struct Health {
    conditions: Mutex<Vec<Condition>>,
    pulses: Mutex<Vec<Weak<Mutex<Instant>>>>,
    shutting_down: AtomicBool,
}

/// The pulse of a loop, which counts until this is dropped.
#[derive(Debug)]
pub struct Pulse(Arc<Mutex<Instant>>);

impl Pulse {
    /// Notes that the loop makes progress.
    pub fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
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

    /// Adds a loop that has to make progress.
    pub fn pulse(&self) -> Pulse {
        let last = Arc::new(Mutex::new(Instant::now()));
        self.pulses.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&last));
        Pulse(last)
    }

    /// Returns whether all loops make progress.
    pub fn is_alive(&self) -> bool {
        let mut pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.retain(|pulse| pulse.strong_count() > 0);
        let beats = |last: Arc<Mutex<Instant>>| {
            last.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < STANDSTILL
        };
        pulses.iter().filter_map(Weak::upgrade).all(beats)
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
    fn each_loop_has_to_make_progress() {
        let health = Health::new();
        assert!(health.is_alive(), "without any");
        let (one, other) = (health.pulse(), health.pulse());
        assert!(health.is_alive());
        *one.0.lock().expect("not poisoned") =
            Instant::now().checked_sub(STANDSTILL).expect("a longer uptime");
        assert!(!health.is_alive());
        one.beat();
        assert!(health.is_alive());
        *other.0.lock().expect("not poisoned") =
            Instant::now().checked_sub(STANDSTILL).expect("a longer uptime");
        drop(other);
        assert!(health.is_alive(), "one that has ended does not count");
    }

    #[test]
    fn a_process_that_shuts_down_is_not_ready() {
        let health = Health::new();
        health.shut_down();
        assert_eq!(health.unmet(), ["shutdown: the process is shutting down"]);
    }
}
