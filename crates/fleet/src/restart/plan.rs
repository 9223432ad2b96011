//! The plan: which restarts begin now.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{
    change::{Change, Consent, Pace, Step},
    flights::{Follow, next_eviction},
    ledger::{Flight, Ledger, Stop, Wave},
    planning::{Planning, Start, World},
    seen::Seen,
    verdict::Verdict,
};

/// What to do now.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The ledger to write before any step is taken.
    pub ledger: Ledger,
    /// The steps.
    pub steps: Vec<Step>,
    /// What becomes of each workload, in the order in which they were given.
    pub verdicts: Vec<Verdict>,
}

/// How far the restarts of an Instrumentation are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// A configuration that workloads have received: the first in order, if several languages are injected.
    pub config: Option<String>,
    /// The number of workloads that were restarted and are no longer observed.
    pub done: usize,
    /// The number of those, of all that are observed or still to be restarted, and of those that were refused.
    pub total: usize,
    /// The number of workloads that the API server did not let be restarted.
    pub refused: usize,
    /// The first of them.
    pub refusal: Option<Stop>,
    /// Why nothing more is restarted.
    pub stop: Option<Stop>,
}

/// Plans what to do now.
pub fn plan(world: World<'_>, pace: &Pace, ledger: &Ledger) -> Plan {
    let mut ledger = ledger.clone();
    ledger.set_clock(world.now);
    let mut planning = Planning {
        world,
        pace,
        ledger,
        steps: Vec::new(),
        wanted: BTreeSet::new(),
        workloads: world.workloads.iter().map(|seen| (&seen.workload, seen)).collect(),
        instrumentations: world.instrumentations.iter().map(|one| (one.uid.as_str(), one)).collect(),
    };
    planning.follow_instrumentations();
    planning.follow_flights();
    planning.evict();
    let verdicts = planning.start();
    planning.evict_refused();
    planning.forget_waves();
    Plan { ledger: planning.ledger, steps: planning.steps, verdicts }
}

impl Plan {
    /// Whether time alone may change it. If not, it stays the same until what is seen changes.
    pub fn may_change(&self) -> bool {
        let waits =
            |verdict: &Verdict| matches!(verdict, Verdict::Waits(wait) if !wait.is_for_what_is_seen());
        !self.steps.is_empty() || !self.ledger.flights.is_empty() || self.verdicts.iter().any(waits)
    }

    /// Returns how far the restarts of an Instrumentation are; `None` if there are none. `workloads` are those that
    /// were planned.
    pub fn progress(&self, workloads: &[Seen], instrumentation: &str) -> Option<Progress> {
        let wave = self.ledger.waves.get(instrumentation)?;
        let flights = self.ledger.flights.iter();
        let current = flights.filter(|flight| {
            flight.change.instrumentation == instrumentation && flight.change.generation == wave.generation
        });
        let (received, other): (Vec<_>, Vec<_>) =
            current.partition(|flight| wave.has_received(&flight.workload, &flight.change.config));
        let waits = workloads.iter().zip(&self.verdicts).filter(|(seen, verdict)| {
            seen.instrumentation.as_deref() == Some(instrumentation) && matches!(verdict, Verdict::Waits(_))
        });
        let all = wave.count();
        let configs = wave.received.values().flat_map(BTreeMap::values).flatten();
        let begun = other.iter().map(|flight| &flight.change.config);
        Some(Progress {
            config: configs.chain(begun).min().cloned(),
            done: all.saturating_sub(received.len()),
            total: all + other.len() + waits.count() + wave.refused.len(),
            refused: wave.refused.len(),
            refusal: wave.refused.first().cloned(),
            stop: wave.stop.clone(),
        })
    }
}

impl Planning<'_> {
    /// Begins a wave anew where the Instrumentation was changed, and resumes it where its annotation says so.
    fn follow_instrumentations(&mut self) {
        let now = self.world.now;
        let known = &self.instrumentations;
        self.ledger.waves.retain(|uid, _| known.contains_key(uid.as_str()));
        for (uid, wave) in &mut self.ledger.waves {
            let present = known[uid.as_str()];
            if wave.generation != present.generation {
                let failed = std::mem::take(&mut wave.failed);
                *wave = Wave { failed, ..Wave::new(present.generation, now, present.resume.clone()) };
                continue;
            }
            let is_told = present.resume.is_some() && present.resume != wave.resume;
            wave.resume.clone_from(&present.resume);
            wave.refused.retain(|refused| !is_told && self.workloads.contains_key(&refused.workload));
            if let Some(stop) = wave.stop.take_if(|_| is_told) {
                wave.is_proven = false;
                // It is observed again, as the canary; the others that failed are when it is healthy.
                let seen = self.workloads.get(&stop.workload);
                let again = seen.and_then(|seen| observed_again(seen, uid, wave, now));
                self.ledger.flights.extend(again);
            }
        }
    }

    fn follow_flights(&mut self) {
        for flight in std::mem::take(&mut self.ledger.flights) {
            let Some(seen) = self.workloads.get(&flight.workload) else { continue };
            let follow = Follow {
                now: self.world.now,
                pace: self.pace,
                ledger: &mut self.ledger,
                steps: &mut self.steps,
                seen,
            };
            let goes_on = follow.follow(flight);
            self.ledger.flights.extend(goes_on);
        }
    }

    /// Evicts one pod of each workload that is ready for it.
    fn evict(&mut self) {
        let mut starts = self.ledger.starts.clone();
        let goes_on = self.ledger.flights.iter().filter(|flight| self.ledger.goes_on(&flight.change));
        for flight in goes_on {
            let Some(seen) = self.workloads.get(&flight.workload) else { continue };
            if let Some(pod) = next_eviction(seen, flight).filter(|_| !self.is_blocked(flight))
                && starts.len() < self.pace.per_minute
            {
                starts.push(self.world.now);
                self.steps.push(eviction(flight, pod));
            }
        }
        self.ledger.starts = starts;
    }

    /// Tries one eviction again that was refused, of the workload that has waited the longest. It needs room as a new
    /// restart does, which had its chance before.
    fn evict_refused(&mut self) {
        let due = self.ledger.flights.iter().filter(|flight| {
            self.is_blocked(flight)
                && flight.refusals.is_none_or(|refusals| refusals.until() <= self.world.now)
        });
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|flight| flight.refusals.map(|refusals| refusals.at));
        let next = due.into_iter().find_map(|flight| {
            let goes_on = self.ledger.goes_on(&flight.change);
            let seen = self.workloads.get(&flight.workload).filter(|_| goes_on)?;
            let pod = next_eviction(seen, flight)?;
            let is_proven = self.ledger.waves.get(&flight.change.instrumentation)?.is_proven;
            self.has_room(seen, &flight.change, is_proven).ok().map(|()| eviction(flight, pod))
        });
        if let Some(step) = next {
            self.ledger.starts.push(self.world.now);
            self.steps.push(step);
        }
    }

    /// Judges each workload, the best canaries first, and begins restarts as far as the pace allows.
    fn start(&mut self) -> Vec<Verdict> {
        let workloads = self.world.workloads;
        let mut order: Vec<usize> = (0..workloads.len()).collect();
        order.sort_by_key(|index| {
            let seen = &workloads[*index];
            (!self.is_mended(seen), seen.is_ordered, &seen.workload)
        });
        let mut verdicts = vec![Verdict::UpToDate; workloads.len()];
        for index in order {
            let seen = &workloads[index];
            verdicts[index] = match self.judge(seen) {
                Ok(start) => {
                    self.begin(seen, start);
                    Verdict::Starts
                }
                Err(verdict) => verdict,
            };
        }
        verdicts
    }

    fn begin(&mut self, seen: &Seen, Start { method, change, is_again }: Start) {
        let now = self.world.now;
        let workload = seen.workload.clone();
        let writes = method == Consent::Rollout && !is_again;
        match method {
            Consent::Rollout if is_again => {}
            Consent::Rollout => {
                self.ledger.starts.push(now);
                self.steps.push(Step::Rollout { workload: workload.clone(), change: change.clone() });
            }
            // Each eviction is a start of its own; the first is planned by the next plan.
            Consent::Evict | Consent::Never => self.ledger.note(&workload, &change),
        }
        let before = seen.newest.unwrap_or(now);
        self.ledger.flights.push(Flight {
            workload,
            change,
            method,
            at: now,
            before,
            is_written: !writes,
            is_ending: false,
            is_interrupted: false,
            healthy: None,
            refusals: None,
        });
    }

    /// Forgets Instrumentations for which nothing was restarted and nothing is to be.
    fn forget_waves(&mut self) {
        let wanted = &self.wanted;
        self.ledger.waves.retain(|uid, wave| {
            wanted.contains(uid.as_str())
                || wave.stop.is_some()
                || !wave.failed.is_empty()
                || wave.count() > 0
        });
    }
}

fn eviction(flight: &Flight, (pod, uid): (&str, &str)) -> Step {
    Step::Evict { workload: flight.workload.clone(), pod: pod.to_owned(), uid: uid.to_owned() }
}

/// A workload whose restart failed, after restarts were resumed.
fn observed_again(seen: &Seen, uid: &str, wave: &Wave, now: Timestamp) -> Option<Flight> {
    let method = *seen.consent.as_ref().ok().filter(|consent| **consent != Consent::Never)?;
    let config = seen.config.clone()?;
    wave.has_received(&seen.workload, &config).then(|| Flight {
        workload: seen.workload.clone(),
        change: Change { instrumentation: uid.to_owned(), generation: wave.generation, config },
        method,
        at: now,
        before: seen.newest.unwrap_or(now),
        is_written: true,
        is_ending: false,
        is_interrupted: false,
        healthy: None,
        refusals: None,
    })
}
