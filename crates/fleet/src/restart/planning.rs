//! A plan while it is made: whether a workload is restarted now, and if not, why.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use super::{
    change::{Change, Consent, LEAST_AVAILABLE, Pace, Step},
    ledger::{Filled, Flight, Ledger},
    observed::{Fit, Health, Instrumentation, ObservedWorkload},
    verdict::{Left, Verdict, Wait},
};
use crate::workload::Workload;

/// What is observed, and when. Both lists have to be complete: what is not in them is treated as deleted.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'w> {
    /// The present time.
    pub now: Timestamp,
    /// All Instrumentations.
    pub instrumentations: &'w [Instrumentation],
    /// All workloads with pods that have an agent or opt in.
    pub workloads: &'w [ObservedWorkload],
    /// Whether the webhook would inject what the plan expects.
    pub webhook: &'w Webhook,
}

/// The path at which a replica of the webhook answers the hashes of Instrumentations, one in a line: with the query
/// `namespace`, that of the pods, and `instrumentation`, which may be repeated, as `namespace/name`.
pub const HASHES: &str = "/hashes";

/// What is known of the replicas of the webhook. As long as nothing is, all of them are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Webhook {
    /// Why some replica does not answer.
    pub unavailable: Option<String>,
    /// Which replica would inject something else, by the namespace of a new pod and the expected configuration.
    pub differs: BTreeMap<(String, String), String>,
}

impl Webhook {
    /// Returns why new pods of a namespace might not get a configuration.
    pub fn doubt(&self, namespace: &str, config: &str) -> Option<&str> {
        let differs = || self.differs.get(&(namespace.to_owned(), config.to_owned()));
        self.unavailable.as_ref().or_else(differs).map(String::as_str)
    }

    /// Returns why the new pods of a flight might not get its configuration.
    pub(super) fn doubt_of(&self, flight: &Flight) -> Option<&str> {
        self.doubt(&flight.workload.namespace, &flight.change.config)
    }
}

/// A plan as it is made.
pub(super) struct Planning<'w> {
    /// What is seen.
    pub(super) observed: Observed<'w>,
    /// The limits.
    pub(super) pace: &'w Pace,
    /// The ledger as it will be.
    pub(super) ledger: Ledger,
    /// How much of its ConfigMap is filled.
    pub(super) filled: Filled,
    /// The steps to take.
    pub(super) steps: Vec<Step>,
    /// The flights that have ended as they should.
    pub(super) done: Vec<Flight>,
    /// The Instrumentations of outdated workloads with consent.
    pub(super) wanted: BTreeSet<&'w str>,
    /// The workloads by their names.
    pub(super) workloads: HashMap<&'w Workload, &'w ObservedWorkload>,
    /// The Instrumentations by their UIDs.
    pub(super) instrumentations: HashMap<&'w str, &'w Instrumentation>,
}

/// A restart that begins.
pub(super) struct Start {
    /// How.
    pub(super) method: Consent,
    /// For what.
    pub(super) change: Change,
    /// Whether it is another attempt, for pods that the webhook did not inject.
    pub(super) is_repeat: bool,
}

impl<'w> Planning<'w> {
    /// Returns how to restart a workload now; else why not.
    pub(super) fn judge(&mut self, seen: &'w ObservedWorkload) -> Result<Start, Verdict> {
        if let Some(flight) = self.ledger.flights.iter().find(|flight| flight.workload == seen.workload) {
            return Err(Verdict::Restarting { since: flight.at, refused: seen.refused.clone() });
        }
        if seen.outdated.is_empty() {
            return Err(Verdict::UpToDate);
        }
        let (method, uid, config) = consent(seen).map_err(Verdict::Left)?;
        let Some(present) = self.instrumentations.get(uid) else {
            return Err(Verdict::Left(Left::NoAgent));
        };
        self.wanted.insert(uid);
        if let Some(by) = &seen.paused {
            return Err(Verdict::Waits(Wait::Paused(by.clone())));
        }
        let now = self.observed.now;
        let has_room = self.filled.has_room(&present.namespace);
        let is_known = self.ledger.waves.get(uid).is_some_and(|wave| wave.trials.contains_key(config));
        if !is_known {
            if !has_room {
                return Err(Verdict::Left(Left::LedgerFull));
            }
            self.filled.add(&present.namespace, config.len());
        }
        let wave = self.ledger.waves.entry(uid.to_owned()).or_insert_with(|| present.wave());
        wave.trial(config, now);
        let record = seen.record.as_ref().filter(|record| {
            (&*record.instrumentation, record.generation, &*record.config)
                == (uid, present.generation, config)
        });
        if let Some(record) = record {
            wave.adopt(&seen.workload, config, record.attempt);
        }
        let trial = &*wave.trial(config, now);
        let received = trial.received.attempt(&seen.workload);
        let is_behind =
            received.is_none_or(|last| last < trial.resumed || last < trial.attempt && seen.missed > 0);
        let is_repeat = !is_behind && seen.missed > 0 && trial.may_repeat(now);
        if !is_behind && !is_repeat {
            return Err(Verdict::Left(Left::AlreadyRestarted));
        }
        let (settled, is_proven) = (trial.since + self.pace.settle, trial.is_proven && !is_repeat);
        let attempt = trial.attempt + u8::from(is_repeat);
        if let Some(refused) = wave.refused.iter().find(|refused| refused.workload == seen.workload) {
            return Err(Verdict::Left(Left::Refused(refused.reason.clone())));
        }
        if let Some(stop) = wave.stop_in(&seen.workload.namespace) {
            return Err(Verdict::Left(Left::Stopped(stop.clone())));
        }
        if !has_room {
            return Err(Verdict::Left(Left::LedgerFull));
        }
        self.is_ready(seen, method)?;
        if settled > now {
            return Err(Verdict::Waits(Wait::Settles(settled)));
        }
        let change = Change {
            instrumentation: uid.to_owned(),
            generation: present.generation,
            config: config.to_owned(),
            attempt,
        };
        self.has_room(seen, &change, is_proven).map_err(Verdict::Waits)?;
        if let Some(why) = self.observed.webhook.doubt(&seen.workload.namespace, config) {
            return Err(Verdict::Waits(Wait::Webhook(why.to_owned())));
        }
        Ok(Start { method, change, is_repeat })
    }

    /// Checks that the workload is not busy or failing, unless a restart of ours or an agent has to be mended.
    fn is_ready(&self, seen: &ObservedWorkload, method: Consent) -> Result<(), Verdict> {
        if seen.unconfirmed > 0 {
            return Err(Verdict::Waits(Wait::Unconfirmed(seen.unconfirmed)));
        }
        let is_mended = self.is_mended(seen);
        match &seen.health {
            // A pod that cannot start is not available: its eviction costs nothing.
            Health::Failing(_) if is_mended => return Ok(()),
            Health::Progressing { .. } if seen.is_failing => return Ok(()),
            Health::Healthy => {}
            Health::Progressing { .. } if is_mended => {}
            Health::Progressing { .. } => return Err(Verdict::Waits(Wait::Rollout)),
            Health::Failing(pod) => return Err(Verdict::Left(Left::Failing(pod.name.clone()))),
        }
        if method == Consent::Evict && seen.available < LEAST_AVAILABLE {
            return Err(Verdict::Left(Left::TooFewAvailable));
        }
        Ok(())
    }

    /// Whether its outdated pods fail because of an agent, or its restart for an earlier generation failed: its rollout may
    /// never be complete without another one.
    pub(super) fn is_mended(&self, seen: &ObservedWorkload) -> bool {
        let wave = seen.instrumentation.as_ref().and_then(|uid| self.ledger.waves.get(uid));
        seen.is_failing || wave.is_some_and(|wave| wave.failed.contains(&seen.workload))
    }

    /// Checks the canary and the pace.
    pub(super) fn has_room(
        &self,
        seen: &ObservedWorkload,
        change: &Change,
        is_proven: bool,
    ) -> Result<(), Wait> {
        let is_same = |flight: &&Flight| {
            flight.change.instrumentation == change.instrumentation
                && flight.change.generation == change.generation
                && flight.change.config == change.config
                && !flight.is_again
                && !self.is_blocked(flight)
        };
        if let (false, Some(canary)) = (is_proven, self.ledger.flights.iter().find(is_same)) {
            return Err(Wait::Canary(canary.workload.clone()));
        }
        self.room(&seen.workload.namespace)?;
        if self.ledger.starts.len() >= self.pace.per_minute {
            return Err(Wait::Rate);
        }
        Ok(())
    }

    /// Checks that another workload of a namespace may be restarted next to the present ones.
    fn room(&self, namespace: &str) -> Result<(), Wait> {
        let active = |flight: &&Flight| flight.healthy.is_none() && !self.is_blocked(flight);
        let active = self.ledger.flights.iter().filter(active);
        let here = active.clone().filter(|flight| flight.workload.namespace == namespace).count();
        if here >= self.pace.per_namespace {
            return Err(Wait::Namespace);
        }
        if active.count() >= self.pace.at_once { Err(Wait::AtOnce) } else { Ok(()) }
    }

    /// Whether its evictions are refused, which may last forever.
    pub(super) fn is_blocked(&self, flight: &Flight) -> bool {
        let seen = self.workloads.get(&flight.workload);
        seen.is_some_and(|seen| {
            seen.refused.is_some() && (flight.method == Consent::Evict || seen.is_ordered)
        })
    }
}

/// Returns how a workload may be restarted, and for which Instrumentation and configuration.
fn consent(seen: &ObservedWorkload) -> Result<(Consent, &str, &str), Left> {
    let method = match &seen.consent {
        Ok(Consent::Never) => return Err(Left::NoConsent),
        Ok(method) => *method,
        Err(invalid) => return Err(Left::InvalidConsent(invalid.clone())),
    };
    let (Some(uid), Some(config)) = (&seen.instrumentation, &seen.config) else {
        return Err(Left::NoAgent);
    };
    match (&seen.fit, method) {
        (Fit::Kind, _) => Err(Left::Kind),
        (Fit::Fits, _) | (_, Consent::Evict) => Ok((method, uid, config)),
        (Fit::Controlled(by), _) => Err(Left::Controlled(by.clone())),
        (Fit::Recreate, _) => Err(Left::Recreate),
        (Fit::OnDelete, _) => Err(Left::OnDelete),
        (Fit::Partition, _) => Err(Left::Partition),
        (Fit::Paused, _) => Err(Left::Paused),
    }
}
