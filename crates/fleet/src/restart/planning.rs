//! A plan while it is made: whether a workload is restarted now, and if not, why.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;

use super::{
    change::{Change, Consent, LEAST_AVAILABLE, Pace, Step},
    ledger::{Flight, Ledger, Wave},
    seen::{Fit, Health, Instrumentation, Seen},
    verdict::{Left, Verdict, Wait},
};
use crate::workload::Workload;

/// What is seen, and when. Both lists have to be complete: what is not in them is treated as deleted.
#[derive(Clone, Copy, Debug)]
pub struct World<'w> {
    /// The present time.
    pub now: Timestamp,
    /// All Instrumentations.
    pub instrumentations: &'w [Instrumentation],
    /// All workloads with pods that have an agent or opt in.
    pub workloads: &'w [Seen],
}

/// A plan as it is made.
pub(super) struct Planning<'w> {
    /// What is seen.
    pub(super) world: World<'w>,
    /// The limits.
    pub(super) pace: &'w Pace,
    /// The ledger as it will be.
    pub(super) ledger: Ledger,
    /// The steps to take.
    pub(super) steps: Vec<Step>,
    /// The Instrumentations of outdated workloads with consent.
    pub(super) wanted: BTreeSet<&'w str>,
    /// The workloads by their names.
    pub(super) workloads: HashMap<&'w Workload, &'w Seen>,
    /// The Instrumentations by their UIDs.
    pub(super) instrumentations: HashMap<&'w str, &'w Instrumentation>,
}

/// A restart that begins.
pub(super) struct Start {
    /// How.
    pub(super) method: Consent,
    /// For what.
    pub(super) change: Change,
    /// Whether the workload has received the change already, and is only observed and relieved of failing pods.
    pub(super) is_again: bool,
}

impl<'w> Planning<'w> {
    /// Returns how to restart a workload now; else why not.
    pub(super) fn judge(&mut self, seen: &'w Seen) -> Result<Start, Verdict> {
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
        let now = self.world.now;
        let waves = self.ledger.waves.entry(uid.to_owned());
        let wave = waves.or_insert_with(|| Wave::new(present.generation, now, present.resume.clone()));
        let change = Change {
            instrumentation: uid.to_owned(),
            generation: present.generation,
            config: config.to_owned(),
        };
        if seen.record.as_ref() == Some(&change) {
            wave.note(&seen.workload, config);
        }
        let is_again = wave.has_received(&seen.workload, config);
        if is_again && !wave.failed.contains(&seen.workload) {
            return Err(Verdict::Left(Left::AlreadyRestarted));
        }
        if let Some(refused) = wave.refused.iter().find(|refused| refused.workload == seen.workload) {
            return Err(Verdict::Left(Left::Refused(refused.reason.clone())));
        }
        if let Some(stop) = &wave.stop {
            return Err(Verdict::Left(Left::Stopped(stop.clone())));
        }
        let (settled, is_proven) = (wave.since + self.pace.settle, wave.is_proven);
        self.is_ready(seen, method)?;
        if settled > now {
            return Err(Verdict::Waits(Wait::Settles(settled)));
        }
        self.has_room(seen, &change, is_proven).map_err(Verdict::Waits)?;
        Ok(Start { method, change, is_again })
    }

    /// Checks that the workload is not busy or failing, unless a restart of ours or an agent has to be mended.
    fn is_ready(&self, seen: &Seen, method: Consent) -> Result<(), Verdict> {
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
    pub(super) fn is_mended(&self, seen: &Seen) -> bool {
        let wave = seen.instrumentation.as_ref().and_then(|uid| self.ledger.waves.get(uid));
        seen.is_failing || wave.is_some_and(|wave| wave.failed.contains(&seen.workload))
    }

    /// Checks the canary and the pace.
    pub(super) fn has_room(&self, seen: &Seen, change: &Change, is_proven: bool) -> Result<(), Wait> {
        let is_same = |flight: &&Flight| {
            flight.change.instrumentation == change.instrumentation
                && flight.change.generation == change.generation
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

    /// Checks that another workload of a namespace may be restarted beside the present ones.
    fn room(&self, namespace: &str) -> Result<(), Wait> {
        let active = |flight: &&Flight| flight.healthy.is_none() && !self.is_blocked(flight);
        let active = self.ledger.flights.iter().filter(active);
        let here = active.clone().filter(|flight| flight.workload.namespace == namespace).count();
        if here >= self.pace.per_namespace {
            return Err(Wait::Namespace);
        }
        if active.count() >= self.pace.at_once { Err(Wait::AtOnce) } else { Ok(()) }
    }

    /// Whether its evictions are refused, which may last for ever.
    pub(super) fn is_blocked(&self, flight: &Flight) -> bool {
        let seen = self.workloads.get(&flight.workload);
        seen.is_some_and(|seen| {
            seen.refused.is_some() && (flight.method == Consent::Evict || seen.is_ordered)
        })
    }
}

/// Returns how a workload may be restarted, and for which Instrumentation and configuration.
fn consent(seen: &Seen) -> Result<(Consent, &str, &str), Left> {
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
