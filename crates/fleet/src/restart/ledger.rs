//! What restarts have to remember: it is kept in a ConfigMap, and every leader goes on from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::change::{Change, Consent};
use crate::workload::Workload;

/// The key of the ledger in its ConfigMap.
pub const LEDGER_KEY: &str = "ledger.json";

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

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

/// The restarts for one generation of an Instrumentation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wave {
    /// The generation.
    pub generation: i64,
    /// When it was first seen.
    pub since: Timestamp,
    /// Whether a canary has stayed healthy.
    #[serde(default)]
    pub is_proven: bool,
    /// Why nothing more is restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// The value of the resuming annotation that was seen last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// The workloads that did not become healthy, in this generation or those before. A later one has to mend them,
    /// and begins with them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub failed: BTreeSet<Workload>,
    /// The workloads that the API server did not let be restarted for this generation, with its message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Stop>,
    /// The configurations that workloads have received: by namespace, then by `Kind/name`.
    #[serde(default)]
    pub received: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// Why the restarts of an Instrumentation, or of one workload, were stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The workload that did not become healthy, or was refused.
    pub workload: Workload,
    /// What happened to it.
    pub reason: String,
    /// When it was seen.
    pub at: Timestamp,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.workload, self.reason)
    }
}

/// One workload that is restarted or observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// Whether injection was paused meanwhile, so that its new pods prove nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_interrupted: bool,
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

impl Wave {
    /// Begins the restarts for a generation.
    pub fn new(generation: i64, since: Timestamp, resume: Option<String>) -> Self {
        Self {
            generation,
            since,
            is_proven: false,
            stop: None,
            resume,
            failed: BTreeSet::new(),
            refused: Vec::new(),
            received: BTreeMap::new(),
        }
    }

    /// Whether a workload has received a configuration.
    pub fn has_received(&self, workload: &Workload, config: &str) -> bool {
        let of_namespace = self.received.get(&workload.namespace);
        let configs = of_namespace.and_then(|workloads| workloads.get(&key(workload)));
        configs.is_some_and(|configs| configs.iter().any(|received| received == config))
    }

    /// Notes that a workload receives a configuration.
    pub fn note(&mut self, workload: &Workload, config: &str) {
        if !self.has_received(workload, config) {
            let of_namespace = self.received.entry(workload.namespace.clone()).or_default();
            of_namespace.entry(key(workload)).or_default().push(config.to_owned());
        }
    }

    /// Forgets that a workload receives a configuration: only a part of its pods was evicted.
    pub fn forget(&mut self, workload: &Workload, config: &str) {
        let of_namespace = self.received.get_mut(&workload.namespace);
        if let Some(configs) = of_namespace.and_then(|workloads| workloads.get_mut(&key(workload))) {
            configs.retain(|received| received != config);
        }
    }

    /// The number of workloads that have received a configuration.
    pub fn count(&self) -> usize {
        self.received.values().map(BTreeMap::len).sum()
    }
}

fn key(workload: &Workload) -> String {
    format!("{}/{}", workload.kind, workload.name)
}

impl Ledger {
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
        let reason = message.chars().take(LONGEST).collect();
        if let Some(wave) = self.wave_of(&flight.change) {
            wave.refused.push(Stop { workload: workload.clone(), reason, at });
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
            wave.note(workload, &change.config);
        }
    }

    /// The restarts that a change belongs to, unless its Instrumentation has changed since.
    pub fn wave_of(&mut self, change: &Change) -> Option<&mut Wave> {
        let wave = self.waves.get_mut(&change.instrumentation);
        wave.filter(|wave| wave.generation == change.generation)
    }

    /// Whether restarts for a change go on: its Instrumentation is the same, and they were not stopped.
    pub fn goes_on(&self, change: &Change) -> bool {
        let wave = self.waves.get(&change.instrumentation);
        wave.is_some_and(|wave| wave.generation == change.generation && wave.stop.is_none())
    }

    /// Moves times that another leader's clock has put into the future to the present, so that nothing waits for
    /// them longer than it should, and forgets starts that are older than a minute.
    pub fn set_clock(&mut self, now: Timestamp) {
        let stops = self.waves.values_mut().filter_map(|wave| wave.stop.as_mut());
        stops.for_each(|stop| stop.at = stop.at.min(now));
        self.waves.values_mut().for_each(|wave| wave.since = wave.since.min(now));
        for flight in &mut self.flights {
            flight.at = flight.at.min(now);
            flight.healthy = flight.healthy.map(|at| at.min(now));
            flight.refusals = flight.refusals.map(|known| Refusals { at: known.at.min(now), ..known });
        }
        self.starts.iter_mut().for_each(|start| *start = (*start).min(now));
        self.starts.retain(|start| now.duration_since(*start) < MINUTE);
    }
}
