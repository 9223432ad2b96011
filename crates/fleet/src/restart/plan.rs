//! The plan: which restarts begin now.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{
    change::{Change, Consent, Pace, Step},
    flights::{Follow, next_eviction},
    ledger::{Filled, Flight, Ledger, Stop, Wave},
    observed::ObservedWorkload,
    planning::{Observed, Planning, Start},
    verdict::{Left, Verdict, Wait},
};
use crate::workload::Workload;

/// What to do now.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The ledger to write before any step is taken.
    pub ledger: Ledger,
    /// The steps.
    pub steps: Vec<Step>,
    /// What becomes of each workload, in the order in which they were given.
    pub verdicts: Vec<Verdict>,
    /// The restarts that have ended well: pods were replaced, and have stayed healthy.
    pub done: Vec<Flight>,
}

/// How far the restarts of an Instrumentation are. Numbers of workloads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// A configuration that workloads receive: the first in order, if several languages are injected.
    pub config: Option<String>,
    /// Those that were restarted, have stayed healthy and are up to date.
    pub done: usize,
    /// Those, and all that are observed or still to be restarted, that failed, that were refused, or that are outdated
    /// although they were restarted.
    pub total: usize,
    /// Those that were restarted, and failed or are outdated all the same.
    pub left: usize,
    /// Those that the API server did not let be restarted.
    pub refused: usize,
    /// The first of them.
    pub refusal: Option<Stop>,
    /// Why none waits any more: in all namespaces, or in the one of this workload.
    pub stop: Option<Stop>,
    /// Whether it is in all.
    pub is_stopped_for_all: bool,
    /// What is waited for and has to be mended: a reason of a condition, and a sentence.
    pub obstacle: Option<(&'static str, String)>,
}

/// Plans what to do now.
pub fn plan(observed: Observed<'_>, pace: &Pace, ledger: &Ledger) -> Plan {
    let mut ledger = ledger.clone();
    ledger.set_clock(observed.now);
    let mut planning = Planning {
        observed,
        pace,
        filled: Filled::default(),
        ledger,
        steps: Vec::new(),
        done: Vec::new(),
        wanted: BTreeSet::new(),
        workloads: observed.workloads.iter().map(|seen| (&seen.workload, seen)).collect(),
        instrumentations: observed.instrumentations.iter().map(|one| (one.uid.as_str(), one)).collect(),
    };
    planning.follow_instrumentations();
    planning.follow_configurations();
    planning.follow_flights();
    planning.evict();
    planning.filled = planning.ledger.filled();
    let verdicts = planning.start();
    planning.evict_refused();
    planning.forget_waves();
    Plan { ledger: planning.ledger, steps: planning.steps, verdicts, done: planning.done }
}

impl Plan {
    /// Whether time alone may change it. If not, it stays the same until what is seen changes.
    pub fn may_change(&self) -> bool {
        let waits =
            |verdict: &Verdict| matches!(verdict, Verdict::Waits(wait) if !wait.is_for_what_is_seen());
        !self.steps.is_empty() || !self.ledger.flights.is_empty() || self.verdicts.iter().any(waits)
    }

    /// Returns the configurations that the webhook has to inject into new pods, each with its workload: for the steps,
    /// and for restarts in progress.
    pub fn expected(&self) -> impl Iterator<Item = (&Workload, &str)> {
        self.ledger.flights.iter().map(|flight| (&flight.workload, &*flight.change.config))
    }

    /// Returns how far the restarts of an Instrumentation are; `None` if there are none. `workloads` are those that
    /// were planned.
    pub fn progress(&self, workloads: &[ObservedWorkload], instrumentation: &str) -> Option<Progress> {
        let none = Wave::default();
        let known = self.ledger.waves.get(instrumentation);
        let wave = known.unwrap_or(&none);
        let flights = self.ledger.flights.iter();
        let flights: Vec<_> = flights
            .filter(|flight| {
                flight.change.instrumentation == instrumentation
                    && flight.change.generation == wave.generation
            })
            .collect();
        let has_received = |workload: &Workload| {
            wave.trials.values().any(|trial| trial.received.attempt(workload).is_some())
        };
        let is_flying = |workload: &Workload| flights.iter().any(|flight| flight.workload == *workload);
        let mut progress = Progress {
            config: wave.trials.keys().next().cloned(),
            total: wave.count() + wave.refused.len(),
            refused: wave.refused.len(),
            refusal: wave.refused.first().cloned(),
            stop: wave.stop_of_all().or_else(|| wave.stops().next()).cloned(),
            is_stopped_for_all: wave.stop_of_all().is_some(),
            ..Progress::default()
        };
        let mut begun = flights.iter().filter(|flight| has_received(&flight.workload)).count();
        progress.total += flights.len() - begun;
        for (seen, verdict) in workloads.iter().zip(&self.verdicts) {
            let is_own = seen.instrumentation.as_deref() == Some(instrumentation);
            let is_left = wave.failed.contains(&seen.workload) || is_own && !seen.outdated.is_empty();
            let received = has_received(&seen.workload) && !is_flying(&seen.workload);
            match verdict {
                // It receives another attempt.
                Verdict::Waits(wait) if is_own => {
                    begun += usize::from(received);
                    progress.total += usize::from(!received);
                    if let Wait::Webhook(why) = wait {
                        progress.obstacle.get_or_insert_with(|| ("WebhookUnavailable", why.clone()));
                    }
                }
                Verdict::Left(full @ Left::LedgerFull) if is_own => {
                    progress.total += usize::from(!received);
                    progress.obstacle = Some(("LedgerFull", full.to_string()));
                }
                _ => progress.left += usize::from(received && is_left),
            }
        }
        progress.done = wave.count().saturating_sub(begun + progress.left);
        (known.is_some() || progress.obstacle.is_some()).then_some(progress)
    }
}

impl Planning<'_> {
    /// Begins a wave anew where the Instrumentation was changed, and resumes it where its annotation says so.
    fn follow_instrumentations(&mut self) {
        let now = self.observed.now;
        let known = &self.instrumentations;
        self.ledger.waves.retain(|uid, _| known.contains_key(uid.as_str()));
        for (uid, wave) in &mut self.ledger.waves {
            let present = known[uid.as_str()];
            if wave.generation != present.generation {
                let failed = std::mem::take(&mut wave.failed);
                *wave = Wave { failed, ..present.wave() };
                continue;
            }
            let is_resumed = wave.is_resumed(present.resume.as_deref());
            wave.refused.retain(|refused| !is_resumed && self.workloads.contains_key(&refused.workload));
            if !is_resumed {
                continue;
            }
            // Those that failed are observed again, while another one is the canary.
            for (config, trial) in &mut wave.trials {
                for stop in trial.resume() {
                    let seen = self.workloads.get(&stop.workload);
                    let change = |attempt| Change {
                        instrumentation: uid.clone(),
                        generation: wave.generation,
                        config: config.clone(),
                        attempt,
                    };
                    let change = trial.received.attempt(&stop.workload).map(change);
                    let again = seen.zip(change).and_then(|(seen, change)| observed_again(seen, change, now));
                    self.ledger.flights.extend(again);
                }
            }
        }
    }

    /// Forgets restarts for configurations that new pods do not get any more.
    fn follow_configurations(&mut self) {
        // What a new pod gets in place of one that was not read yet is not known.
        if self.observed.workloads.iter().any(|seen| seen.unconfirmed > 0) {
            return;
        }
        let present = self.observed.workloads.iter().filter_map(|seen| seen.config.as_deref());
        let flying = self.ledger.flights.iter().map(|flight| &*flight.change.config);
        let present: BTreeSet<String> = present.chain(flying).map(str::to_owned).collect();
        self.ledger.waves.values_mut().for_each(|wave| wave.keep(|config| present.contains(config)));
    }

    fn follow_flights(&mut self) {
        for flight in std::mem::take(&mut self.ledger.flights) {
            let Some(seen) = self.workloads.get(&flight.workload) else { continue };
            let follow = Follow {
                now: self.observed.now,
                pace: self.pace,
                ledger: &mut self.ledger,
                steps: &mut self.steps,
                done: &mut self.done,
                seen,
                webhook: self.observed.webhook,
            };
            let goes_on = follow.follow(flight);
            self.ledger.flights.extend(goes_on);
        }
    }

    /// Evicts one pod of each workload that is ready for it.
    fn evict(&mut self) {
        let mut starts = self.ledger.starts.clone();
        let goes_on = self.ledger.flights.iter().filter(|flight| self.ledger.goes_on(flight));
        for flight in goes_on {
            let Some(seen) = self.workloads.get(&flight.workload) else { continue };
            if let Some(pod) =
                next_eviction(seen, flight, self.observed.webhook).filter(|_| !self.is_blocked(flight))
                && starts.len() < self.pace.per_minute
            {
                starts.push(self.observed.now);
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
                && flight.refusals.is_none_or(|refusals| refusals.until() <= self.observed.now)
        });
        let mut due: Vec<_> = due.collect();
        due.sort_by_key(|flight| flight.refusals.map(|refusals| refusals.at));
        let next = due.into_iter().find_map(|flight| {
            let goes_on = self.ledger.goes_on(flight);
            let seen = self.workloads.get(&flight.workload).filter(|_| goes_on)?;
            let pod = next_eviction(seen, flight, self.observed.webhook)?;
            let wave = self.ledger.waves.get(&flight.change.instrumentation)?;
            let is_proven = wave.trials.get(&flight.change.config)?.is_proven;
            self.has_room(seen, &flight.change, is_proven).ok().map(|()| eviction(flight, pod))
        });
        if let Some(step) = next {
            self.ledger.starts.push(self.observed.now);
            self.steps.push(step);
        }
    }

    /// Judges each workload, the best canaries first, and begins restarts as far as the pace allows.
    fn start(&mut self) -> Vec<Verdict> {
        let workloads = self.observed.workloads;
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

    fn begin(&mut self, seen: &ObservedWorkload, Start { method, change, is_repeat }: Start) {
        let now = self.observed.now;
        let workload = seen.workload.clone();
        if let Some(trial) = self.ledger.trial_of(&change).filter(|_| is_repeat) {
            trial.repeat(now);
        }
        match method {
            Consent::Rollout => {
                self.ledger.starts.push(now);
                self.steps.push(Step::Rollout { workload, change: change.clone() });
            }
            // Each eviction is a separate start; the first is planned by the next plan.
            Consent::Evict | Consent::Never => self.ledger.note(&workload, &change),
        }
        let is_written = method != Consent::Rollout;
        self.ledger.flights.push(Flight { is_written, ..Flight::new(seen, method, change, now) });
    }

    /// Forgets Instrumentations for which nothing was restarted and nothing is to be.
    fn forget_waves(&mut self) {
        let wanted = &self.wanted;
        self.ledger.waves.retain(|uid, wave| {
            wanted.contains(uid.as_str())
                || wave.stops().next().is_some()
                || !wave.failed.is_empty()
                || wave.count() > 0
        });
    }
}

fn eviction(flight: &Flight, (pod, uid): (&str, &str)) -> Step {
    Step::Evict { workload: flight.workload.clone(), pod: pod.to_owned(), uid: uid.to_owned() }
}

/// A workload whose restart failed, after restarts were resumed.
fn observed_again(seen: &ObservedWorkload, change: Change, now: Timestamp) -> Option<Flight> {
    let method = *seen.consent.as_ref().ok().filter(|consent| **consent != Consent::Never)?;
    let is_same = seen.config.as_ref() == Some(&change.config);
    let flight = || Flight { is_written: true, is_again: true, ..Flight::new(seen, method, change, now) };
    is_same.then(flight)
}
