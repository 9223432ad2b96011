//! The promises, checked from outside: by what happened to the cluster.

use std::collections::{BTreeMap, BTreeSet};

use super::{LAG, World, pods::Replicas};
use crate::{
    restart::{Change, Ledger, Pace, Webhook},
    workload::Workload,
};

/// A configuration of a generation of an Instrumentation.
pub type Key = (String, i64, String);

/// What happened.
#[derive(Default)]
pub struct Log {
    /// When restarts and evictions were made.
    begun: Vec<i64>,
    /// How often a workload has received a change, and how often one was taken back.
    received: BTreeMap<(Workload, String), u32>,
    taken_back: BTreeMap<Workload, u32>,
    /// How often the API server has refused a change.
    refused: BTreeMap<(Workload, String), u32>,
    /// Since when each workload is healthy.
    healthy: BTreeMap<Workload, i64>,
    /// The workloads that were restarted for a configuration, and when.
    waves: BTreeMap<Key, BTreeMap<Workload, i64>>,
    /// The configurations with which a workload stayed healthy.
    proven: BTreeSet<Key>,
    /// The workloads that were restarted, and that were not healthy since.
    busy: BTreeSet<Workload>,
}

impl Log {
    pub fn restarts(&self) -> usize {
        self.begun.len()
    }

    pub fn rollout(&mut self, seed: u64, workload: &Workload, change: &Change) {
        let count = self.received.entry((workload.clone(), change.write())).or_default();
        *count += 1;
        let taken_back = self.taken_back.get(workload).copied().unwrap_or_default();
        assert!(*count <= 1 + taken_back.min(1), "seed {seed}: {workload} received {change:?} {count} times");
    }

    pub fn taken_back(&mut self, workload: &Workload) {
        *self.taken_back.entry(workload.clone()).or_default() += 1;
    }

    /// It may be repeated by a leader that could not write it down.
    pub fn refused(&mut self, seed: u64, workload: &Workload, change: &Change) {
        let count = self.refused.entry((workload.clone(), change.write())).or_default();
        *count += 1;
        assert!(*count < 8, "seed {seed}: {workload} was refused {change:?} {count} times");
    }

    /// Another canary is needed then, or those that failed prove the change.
    pub fn resumed(&mut self, key: Key, failed: impl Iterator<Item = Workload>, second: i64) {
        self.proven.remove(&key);
        self.waves.insert(key, failed.map(|failed| (failed, second)).collect());
    }

    /// Notes which workloads are healthy, and which have been so for long enough to prove a change.
    pub fn observe(&mut self, second: i64, workloads: &[Replicas]) {
        for workload in workloads {
            if workload.is_healthy() {
                self.healthy.entry(workload.workload.clone()).or_insert(second);
                self.busy.remove(&workload.workload);
            } else {
                self.healthy.remove(&workload.workload);
            }
        }
        // A few seconds less, since views are late.
        let observe = Pace::default().observe.as_secs() - 5;
        for (key, restarted) in &self.waves {
            let is_proof = |(workload, at): (&Workload, &i64)| {
                let since = self.healthy.get(workload).map(|since| since.max(at));
                since.is_some_and(|since| second - since >= observe)
            };
            if !self.proven.contains(key) && restarted.iter().any(is_proof) {
                self.proven.insert(key.clone());
            }
        }
    }
}

impl World {
    /// Checks pace, canary and stop, when a restart or an eviction is made.
    pub(super) fn begins(&mut self, index: usize, change: &Change) {
        let (seed, second, pace) = (self.seed, self.second, Pace::default());
        let workload = self.workloads[index].workload.clone();
        let ledger = self.ledger().0;
        let wave = ledger.waves.get(&change.instrumentation);
        if let Some(wave) = wave.filter(|wave| wave.generation == change.generation) {
            let stop = wave.stop_in(&workload.namespace);
            assert_eq!(stop, None, "seed {seed}: {workload} is restarted after a stop");
        }
        let mut webhook = Webhook::default();
        self.ask(&workload, &change.config, &mut webhook);
        assert_eq!(webhook, Webhook::default(), "seed {seed}: {workload} is restarted for {change:?}");
        let paused = self.configured[self.workloads[index].instrumentation].paused;
        let is_seen = paused.is_some_and(|since| second - since > i64::try_from(LAG).expect("few"));
        assert!(!is_seen, "seed {seed}: {workload} is restarted while injection is paused");
        self.log.begun.push(second);
        let last_minute = self.log.begun.iter().rev().take_while(|at| second - **at < 60).count();
        assert!(last_minute <= pace.per_minute, "seed {seed}: {last_minute} restarts in a minute");

        let key = (change.instrumentation.clone(), change.generation, change.config.clone());
        // By a restart, or by a rollout of the application itself.
        let has_it = |one: &Replicas| one.pods.iter().all(|pod| pod.config.as_ref() == Some(&change.config));
        let is_well = |one: &Replicas| {
            let since = self.log.healthy.get(&one.workload);
            has_it(one) && since.is_some_and(|since| second - since >= pace.observe.as_secs() - 5)
        };
        let is_proven = self.log.proven.contains(&key) || self.workloads.iter().any(is_well);
        let blocked: BTreeSet<_> = self
            .workloads
            .iter()
            .filter(|one| one.refused.is_some())
            .map(|one| one.workload.clone())
            .collect();
        let others = self.log.waves.entry(key).or_default();
        let is_flying = |other: &Workload| {
            let mut flights = ledger.flights.iter();
            flights.any(|flight| {
                let is_same = flight.change.config == change.config
                    && flight.change.generation == change.generation
                    && flight.change.instrumentation == change.instrumentation;
                flight.workload == *other && is_same && !flight.is_again
            })
        };
        let is_canary =
            |other: &&Workload| **other != workload && !blocked.contains(*other) && is_flying(other);
        let canary = others.keys().find(is_canary);
        assert!(
            canary.is_none() || is_proven || others.contains_key(&workload),
            "seed {seed}: {workload} is restarted in addition to the canary {canary:?}"
        );
        others.entry(workload.clone()).or_insert(second);
        self.log.busy.insert(workload);
    }

    fn is_blocked(&self, workload: &Workload) -> bool {
        self.workloads.iter().any(|one| one.workload == *workload && one.refused.is_some())
    }

    /// Checks what holds at any time.
    pub fn check(&self) {
        let pace = Pace::default();
        let ledger = self.ledger().0;
        let longest = pace.progress * 7 + pace.observe;
        for flight in ledger.flights.iter().filter(|flight| !self.is_blocked(&flight.workload)) {
            let age = self.now().duration_since(flight.at);
            assert!(age <= longest, "seed {}: {flight:?} keeps its place", self.seed);
        }
        let is_busy = |workload: &&Workload| is_flying(&ledger, workload) && !self.is_blocked(workload);
        let busy: Vec<_> = self.log.busy.iter().filter(is_busy).collect();
        assert!(busy.len() <= pace.at_once, "seed {}: {busy:?} at once", self.seed);
        for one in &busy {
            let here = busy.iter().filter(|other| other.namespace == one.namespace).count();
            assert!(here <= pace.per_namespace, "seed {}: {busy:?} in one namespace", self.seed);
        }
    }
}

fn is_flying(ledger: &Ledger, workload: &Workload) -> bool {
    ledger.flights.iter().any(|flight| flight.workload == *workload)
}
