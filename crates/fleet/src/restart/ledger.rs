//! What restarts have to remember: it is kept in a ConfigMap, and every leader resumes from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    change::{Change, Consent},
    observed::ObservedWorkload,
    received::{Received, fnv},
};
use crate::workload::Workload;

/// The key of the ledger in its ConfigMap.
pub const LEDGER_KEY: &str = "ledger.json";

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// How many workloads of one namespace may be refused before its others are not tried.
const MOST_REFUSED: usize = 5;

/// How often an attempt is repeated for pods that the webhook did not inject, and how long after the one before.
const REPEATS: (u8, SignedDuration) = (3, SignedDuration::from_hours(1));

/// The memory of restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Ledger {
    /// The restarts of each Instrumentation, by its UID.
    pub waves: BTreeMap<String, Wave>,
    /// The workloads that are restarted or observed.
    pub flights: Vec<Flight>,
    /// When restarts and evictions of the last minute began.
    pub starts: Vec<Timestamp>,
}

/// How much of the ConfigMap, which has a mebibyte, is filled before each namespace with Instrumentations has an equal
/// share of as much again; in bytes. 50,000 workloads of one Instrumentation fit.
const LARGEST: usize = 500_000;

/// What a wave, a trial and a flight have in the ConfigMap in addition to names, in bytes at most.
const ENTRY: usize = 400;

/// How much of the ConfigMap is filled.
#[derive(Debug, Default)]
pub struct Filled {
    all: usize,
    /// By the namespaces of Instrumentations.
    own: BTreeMap<String, usize>,
}

impl Filled {
    /// Adds an entry for an Instrumentation of a namespace with this text.
    pub fn add(&mut self, namespace: &str, text: usize) {
        self.all += ENTRY + text;
        *self.own.entry(namespace.to_owned()).or_default() += ENTRY + text;
    }

    /// Whether Instrumentations of a namespace may fill more.
    pub fn has_room(&self, namespace: &str) -> bool {
        let own = self.own.get(namespace);
        let share = LARGEST / (self.own.len() + usize::from(own.is_none()));
        self.all < LARGEST || own.copied().unwrap_or_default() < share
    }
}

/// The restarts for one generation of an Instrumentation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Wave {
    /// The generation.
    pub generation: i64,
    /// The namespace of the Instrumentation.
    pub namespace: String,
    /// The hash of the resuming annotation that was seen last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// The workloads that did not become healthy, in this generation or those before. A later one has to mend them,
    /// and begins with them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub failed: BTreeSet<Workload>,
    /// The workloads that the API server did not let be restarted for this generation, with its message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Stop>,
    /// The restarts for each configuration that new pods get: a default image changes it in the same generation.
    pub trials: BTreeMap<String, Trial>,
    /// The last attempt for configurations that no workload gets any more.
    pub past: u8,
}

/// The restarts for one configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// When it was first seen.
    pub since: Timestamp,
    /// Whether a canary has stayed healthy.
    #[serde(default)]
    pub is_proven: bool,
    /// The present attempt, from 1 on.
    pub attempt: u8,
    /// The last attempt for which a user has resumed: it is made for every outdated workload; later ones only for those
    /// with pods that the webhook did not inject.
    #[serde(default)]
    pub resumed: u8,
    /// How often it was repeated without a user.
    #[serde(default)]
    pub repeats: u8,
    /// When it was repeated last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Timestamp>,
    /// Why nothing more is restarted in some namespaces, or in all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<Stop>,
    /// The workloads that have received it.
    #[serde(default)]
    pub received: Received,
}

/// Why the restarts of an Instrumentation, or of one workload, were stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stop {
    /// The workload that did not become healthy, or was refused.
    pub workload: Workload,
    /// What happened to it.
    pub reason: String,
    /// When it was seen.
    pub at: Timestamp,
    /// Whether it was the canary in the Instrumentation's own namespace, so that no namespace goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_for_all: bool,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.workload, self.reason)
    }
}

/// One workload that is restarted or observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact about the restart")]
pub struct Flight {
    /// The workload.
    pub workload: Workload,
    /// What it receives.
    pub change: Change,
    /// How.
    pub method: Consent,
    /// When it was decided.
    pub at: Timestamp,
    /// When the newest pod of the workload had been created by then. Younger pods are the restart's.
    pub before: Timestamp,
    /// Whether its template is known to be written.
    #[serde(default)]
    pub is_written: bool,
    /// Whether it is only observed: no further pod is evicted.
    #[serde(default)]
    pub is_ending: bool,
    /// Whether injection was paused or the webhook unavailable meanwhile, so that its new pods prove nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_interrupted: bool,
    /// Whether its restart failed before, and it is observed again after restarts were resumed. It is no canary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_again: bool,
    /// Since when it is up to date and healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy: Option<Timestamp>,
    /// The evictions that were refused, since the last one that was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusals: Option<Refusals>,
}

/// Evictions that the API server has refused, such as for a `PodDisruptionBudget`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusals {
    /// How many.
    pub count: u32,
    /// When the last one was.
    pub at: Timestamp,
}

impl Refusals {
    /// When the next eviction may be tried: later after each refusal, up to ten minutes.
    pub fn until(&self) -> Timestamp {
        self.at + SignedDuration::from_secs(10 << self.count.min(6)).min(SignedDuration::from_mins(10))
    }
}

impl Flight {
    /// Begins one that is not written yet.
    pub fn new(seen: &ObservedWorkload, method: Consent, change: Change, at: Timestamp) -> Self {
        Self {
            workload: seen.workload.clone(),
            change,
            method,
            at,
            before: seen.newest.unwrap_or(at),
            is_written: false,
            is_ending: false,
            is_interrupted: false,
            is_again: false,
            healthy: None,
            refusals: None,
        }
    }
}

impl Trial {
    /// Begins the restarts for a configuration with this attempt.
    pub fn new(since: Timestamp, attempt: u8) -> Self {
        Self {
            since,
            is_proven: false,
            attempt,
            resumed: attempt,
            repeats: 0,
            repeated: None,
            stops: Vec::new(),
            received: Received::default(),
        }
    }

    /// Whether another attempt may be made for pods that the webhook did not inject.
    pub fn may_repeat(&self, now: Timestamp) -> bool {
        let (most, pause) = REPEATS;
        let is_rested = self.repeated.is_none_or(|at| now.duration_since(at) >= pause);
        self.repeats < most && is_rested && self.attempt < u8::MAX
    }

    /// Begins another attempt for them.
    pub fn repeat(&mut self, now: Timestamp) {
        self.attempt += 1;
        self.repeats += 1;
        self.repeated = Some(now);
        self.is_proven = false;
    }

    /// Begins another attempt for all outdated workloads, by a user. Returns the stops that it ends.
    pub fn resume(&mut self) -> Vec<Stop> {
        self.attempt = self.attempt.saturating_add(1);
        self.resumed = self.attempt;
        self.is_proven &= self.stops.is_empty();
        std::mem::take(&mut self.stops)
    }
}

impl Wave {
    /// Whether a value of the resuming annotation is another one than before. Notes it.
    pub fn is_resumed(&mut self, value: Option<&str>) -> bool {
        // Users write it: only a hash is kept.
        let hash = value.map(|value| format!("{:016x}", fnv(value)));
        let is_other = hash.is_some() && hash != self.resume;
        self.resume = hash;
        is_other
    }

    /// The restarts for a configuration, which begin now if there are none. Where one comes back, it is another attempt.
    pub fn trial(&mut self, config: &str, now: Timestamp) -> &mut Trial {
        let first = self.past.saturating_add(1);
        self.trials.entry(config.to_owned()).or_insert_with(|| Trial::new(now, first))
    }

    /// Forgets the restarts for configurations that are replaced by others.
    pub fn keep(&mut self, is_present: impl Fn(&str) -> bool) {
        let past = &mut self.past;
        self.trials.retain(|config, trial| {
            let stays = is_present(config);
            if !stays {
                *past = trial.attempt.max(*past);
            }
            stays
        });
    }

    /// Notes that a workload receives a configuration by an attempt.
    pub fn note(&mut self, workload: &Workload, config: &str, attempt: u8) {
        self.trials.values_mut().for_each(|trial| trial.received.remove(workload));
        if let Some(trial) = self.trials.get_mut(config) {
            trial.attempt = trial.attempt.max(attempt);
            trial.received.insert(workload, attempt);
        }
    }

    /// Notes what the record of a workload says, unless it is known what that has received.
    pub fn adopt(&mut self, workload: &Workload, config: &str, attempt: u8) {
        if self.trials.values().all(|trial| trial.received.attempt(workload).is_none()) {
            self.note(workload, config, attempt);
        }
    }

    /// Why nothing is restarted in a namespace: a workload failed in it, or in two others, or the canary in that of the
    /// Instrumentation.
    pub fn stop_in(&self, namespace: &str) -> Option<&Stop> {
        let mut own = self.stops().filter(|stop| stop.workload.namespace == namespace);
        own.next().or_else(|| self.stop_of_all())
    }

    /// Why nothing is restarted in any namespace.
    pub fn stop_of_all(&self) -> Option<&Stop> {
        let namespaces: BTreeSet<_> = self.stops().map(|stop| &*stop.workload.namespace).collect();
        self.stops().find(|stop| stop.is_for_all || namespaces.len() > 1)
    }

    /// All stops, those of each configuration in their order.
    pub fn stops(&self) -> impl Iterator<Item = &Stop> {
        self.trials.values().flat_map(|trial| &trial.stops)
    }

    /// The number of workloads that have received a configuration.
    pub fn count(&self) -> usize {
        self.trials.values().map(|trial| trial.received.len()).sum()
    }
}

impl Ledger {
    /// Returns how much of the ConfigMap is filled.
    pub fn filled(&self) -> Filled {
        let mut filled = Filled::default();
        for wave in self.waves.values() {
            let stops = wave.stops().chain(&wave.refused);
            let stops = stops.map(|stop| stop.reason.len() + name(&stop.workload));
            let text: usize = stops.chain(wave.failed.iter().map(name)).sum();
            filled.add(&wave.namespace, text);
            for (config, trial) in &wave.trials {
                filled.add(&wave.namespace, config.len() + trial.received.size());
            }
        }
        for flight in &self.flights {
            if let Some(wave) = self.waves.get(&flight.change.instrumentation) {
                filled.add(&wave.namespace, flight.change.config.len() + name(&flight.workload));
            }
        }
        filled
    }

    /// Reads a ledger.
    ///
    /// # Errors
    /// If it is not one; nothing may be restarted then, since what was restarted is not known.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Writes it.
    pub fn write(&self) -> String {
        serde_json::to_string(self).expect("maps with strings as keys are JSON")
    }

    /// Notes that the template of a workload was written. It is called as soon as the API server has said so.
    pub fn written(&mut self, workload: &Workload) {
        let flight = self.flights.iter_mut().find(|flight| flight.workload == *workload);
        if let Some(flight) = flight {
            flight.is_written = true;
            let change = flight.change.clone();
            self.note(workload, &change);
        }
    }

    /// Notes that the API server refused to have the template of a workload written. It is left as it is until the
    /// Instrumentation changes or restarts are resumed, and does not count as a start.
    pub fn refused(&mut self, workload: &Workload, message: &str, at: Timestamp) {
        /// What a message of an admission policy may have in the ConfigMap, in characters.
        const LONGEST: usize = 300;
        let Some(index) = self.flights.iter().position(|flight| flight.workload == *workload) else { return };
        let flight = self.flights.remove(index);
        self.starts.pop();
        let reason: String = message.chars().take(LONGEST).collect();
        let Some(wave) = self.wave_of(&flight.change) else { return };
        let stop = |reason| Stop { workload: workload.clone(), reason, at, is_for_all: false };
        wave.refused.push(stop(reason.clone()));
        let is_here = |refused: &&Stop| refused.workload.namespace == workload.namespace;
        if wave.refused.iter().filter(is_here).count() >= MOST_REFUSED {
            let reason =
                format!("{MOST_REFUSED} workloads of the namespace were refused, this one with: {reason}");
            wave.trial(&flight.change.config, at).stops.push(stop(reason));
        }
    }

    /// Notes that an eviction was refused: it is none of the restarts of the last minute. Returns whether it is the
    /// first of its workload.
    pub fn eviction_refused(&mut self, workload: &Workload, at: Timestamp) -> bool {
        self.starts.pop();
        let flight = self.flights.iter_mut().find(|flight| flight.workload == *workload);
        let count = flight.map(|flight| {
            let count = flight.refusals.map_or(0, |refusals| refusals.count) + 1;
            flight.refusals = Some(Refusals { count, at });
            count
        });
        count == Some(1)
    }

    /// Notes that a pod was evicted.
    pub fn evicted(&mut self, workload: &Workload) {
        if let Some(flight) = self.flights.iter_mut().find(|flight| flight.workload == *workload) {
            flight.refusals = None;
        }
    }

    /// Notes that a workload has received a change, if its Instrumentation is still the same.
    pub fn note(&mut self, workload: &Workload, change: &Change) {
        if let Some(wave) = self.wave_of(change) {
            wave.note(workload, &change.config, change.attempt);
        }
    }

    /// The restarts that a change belongs to, unless its Instrumentation has changed since.
    pub fn wave_of(&mut self, change: &Change) -> Option<&mut Wave> {
        let wave = self.waves.get_mut(&change.instrumentation);
        wave.filter(|wave| wave.generation == change.generation)
    }

    /// Those for its configuration.
    pub fn trial_of(&mut self, change: &Change) -> Option<&mut Trial> {
        self.wave_of(change)?.trials.get_mut(&change.config)
    }

    /// Whether restarts for the change of a flight go on: its Instrumentation is the same, and they were not stopped.
    pub fn goes_on(&self, flight: &Flight) -> bool {
        let wave = self.waves.get(&flight.change.instrumentation);
        wave.is_some_and(|wave| {
            wave.generation == flight.change.generation && wave.stop_in(&flight.workload.namespace).is_none()
        })
    }

    /// Moves times that another leader's clock has put into the future to the present, so that nothing waits for
    /// them longer than it should, and forgets starts that are older than a minute.
    pub fn set_clock(&mut self, now: Timestamp) {
        for trial in self.waves.values_mut().flat_map(|wave| wave.trials.values_mut()) {
            trial.since = trial.since.min(now);
            trial.repeated = trial.repeated.map(|at| at.min(now));
            trial.stops.iter_mut().for_each(|stop| stop.at = stop.at.min(now));
        }
        for flight in &mut self.flights {
            flight.at = flight.at.min(now);
            flight.healthy = flight.healthy.map(|at| at.min(now));
            flight.refusals = flight.refusals.map(|known| Refusals { at: known.at.min(now), ..known });
        }
        self.starts.iter_mut().for_each(|start| *start = (*start).min(now));
        self.starts.retain(|start| now.duration_since(*start) < MINUTE);
    }
}

/// The bytes of an entry of a workload.
fn name(workload: &Workload) -> usize {
    workload.namespace.len() + workload.name.len() + 100
}
