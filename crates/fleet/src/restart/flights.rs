//! Restarts that have begun: written or not, healthy, failing, stuck.

use jiff::{SignedDuration, Timestamp};

use super::{
    change::{Consent, LEAST_AVAILABLE, Pace, Step},
    ledger::{Flight, Ledger, Stop},
    observed::{Fit, Health, ObservedWorkload},
    planning::Webhook,
};

/// How long the API server's own copy may take to show what was written.
const VISIBLE: SignedDuration = SignedDuration::from_mins(1);

/// The name and the UID of the next pod that a flight evicts, one that is older than the flight: an outdated one of a
/// healthy workload, or one that cannot start. The latter is evicted from an ordered StatefulSet as well, which does not
/// replace it after its template was mended (kubernetes#67250).
pub fn next_eviction<'s>(
    seen: &'s ObservedWorkload,
    flight: &Flight,
    webhook: &Webhook,
) -> Option<(&'s str, &'s str)> {
    match &seen.health {
        // A new pod would have no agent.
        _ if flight.is_ending || seen.paused.is_some() || webhook.doubt_of(flight).is_some() => None,
        Health::Healthy if flight.method == Consent::Evict => {
            let old = seen.outdated.iter().find(|pod| pod.created <= flight.before);
            old.map(|pod| (&*pod.name, &*pod.uid))
        }
        Health::Failing(pod) if pod.created <= flight.before => {
            let is_ours = flight.method == Consent::Evict || seen.is_ordered && flight.is_written;
            is_ours.then_some((&*pod.name, &*pod.uid))
        }
        _ => None,
    }
}

/// A restart may take this many times as long as it may make no progress.
const LONGEST: i32 = 6;

/// One flight at one time.
pub struct Follow<'f> {
    /// The present time.
    pub now: Timestamp,
    /// The limits.
    pub pace: &'f Pace,
    /// The ledger, without its flights.
    pub ledger: &'f mut Ledger,
    /// The steps to take.
    pub steps: &'f mut Vec<Step>,
    /// The flights that have ended as they should.
    pub done: &'f mut Vec<Flight>,
    /// The workload.
    pub seen: &'f ObservedWorkload,
    /// The webhook.
    pub webhook: &'f Webhook,
}

impl Follow<'_> {
    /// Returns the flight as it goes on; `None` if it has ended.
    pub fn follow(mut self, mut flight: Flight) -> Option<Flight> {
        flight.is_interrupted |= self.seen.paused.is_some() || self.webhook.doubt_of(&flight).is_some();
        let is_slow = self.age(&flight) > self.longest() + self.pace.progress;
        if is_slow && self.seen.health != Health::Healthy && self.seen.refused.is_none() {
            self.stop(&flight, format!("not complete, and its restart began at {:.0}", flight.at));
            return None;
        }
        if flight.method == Consent::Rollout && !flight.is_written {
            if self.seen.record.as_ref() != Some(&flight.change) {
                return self.write_again(flight);
            }
            flight.is_written = true;
            self.ledger.note(&flight.workload, &flight.change);
        }
        match &self.seen.health {
            Health::Failing(pod) if pod.created > flight.before => {
                self.stop(&flight, format!("pod {} cannot start: {}", pod.name, pod.reason));
                None
            }
            Health::Failing(_) => {
                let since = flight.at;
                self.unless_stuck(flight, since, SignedDuration::ZERO)
            }
            Health::Progressing { since, min_ready } => self.unless_stuck(flight, *since, *min_ready),
            Health::Healthy => self.settle(flight),
        }
    }

    /// The leader before may have ended between ledger and workload; or the workload had changed.
    fn write_again(mut self, flight: Flight) -> Option<Flight> {
        let wanted = self.seen.config.as_deref() == Some(&*flight.change.config)
            && self.seen.consent == Ok(Consent::Rollout)
            && self.seen.fit == Fit::Fits
            && self.seen.paused.is_none()
            && self.webhook.doubt_of(&flight).is_none();
        if !wanted || !self.ledger.goes_on(&flight) {
            return None;
        }
        if self.take_start() {
            let (workload, change) = (flight.workload.clone(), flight.change.clone());
            self.steps.push(Step::Rollout { workload, change });
        }
        Some(flight)
    }

    fn unless_stuck(
        mut self,
        mut flight: Flight,
        since: Timestamp,
        min_ready: SignedDuration,
    ) -> Option<Flight> {
        flight.healthy = None;
        let since = since.max(flight.at);
        let is_in_time = self.now.duration_since(since) <= self.pace.progress + min_ready.min(self.longest());
        let is_refused = self.seen.refused.is_some() && self.ledger.goes_on(&flight);
        if is_in_time || is_refused {
            return Some(flight);
        }
        self.stop(&flight, format!("no progress since {since:.0}"));
        None
    }

    fn settle(mut self, mut flight: Flight) -> Option<Flight> {
        let is_visible = flight.method == Consent::Evict
            || self.seen.record.as_ref() == Some(&flight.change)
            || self.now.duration_since(flight.at) >= VISIBLE;
        if !is_visible {
            return Some(flight);
        }
        if next_eviction(self.seen, &flight, self.webhook).is_some() {
            if self.may_evict(&flight) {
                flight.healthy = None;
                return Some(flight);
            }
            flight.is_ending = true;
        }
        let healthy = *flight.healthy.get_or_insert(self.now);
        if self.now.duration_since(healthy) < self.pace.observe {
            return Some(flight);
        }
        self.end(flight);
        None
    }

    /// The workload has stayed healthy: with the new configuration, it proves that; without it, no other one would get it.
    fn end(&mut self, flight: Flight) {
        let is_same = self.seen.config.as_deref() == Some(&*flight.change.config);
        let is_new = |created: Timestamp| created > flight.before;
        let lacks_it = is_same
            && (self.seen.outdated.iter().any(|pod| is_new(pod.created))
                || self.seen.unknown.is_some_and(is_new));
        if lacks_it && !flight.is_interrupted {
            return self.stop(&flight, "its new pods did not get the configuration".to_owned());
        }
        let is_whole = self.seen.outdated.is_empty() && self.seen.unconfirmed == 0;
        let is_proof = is_same && is_whole && !flight.is_interrupted;
        if let Some(trial) = self.ledger.trial_of(&flight.change) {
            trial.is_proven |= is_proof;
        }
        if let Some(wave) = self.ledger.wave_of(&flight.change) {
            wave.failed.remove(&flight.workload);
        }
        // The pods that are left are evicted after the interruption. A template is not written by the same attempt again.
        if flight.is_interrupted && flight.method == Consent::Evict {
            self.forget(&flight);
        }
        if !lacks_it && self.seen.newest > Some(flight.before) {
            self.done.push(flight);
        }
    }

    /// Only a part of its pods was evicted.
    fn forget(&mut self, flight: &Flight) {
        if let Some(trial) = self.ledger.trial_of(&flight.change) {
            trial.received.remove(&flight.workload);
        }
    }

    /// Whether a further pod may be evicted: not after a stop, a withdrawn consent, or with too few pods.
    fn may_evict(&mut self, flight: &Flight) -> bool {
        let has_consent = self.seen.consent == Ok(Consent::Evict);
        // Others have their turn before those that are left.
        let is_in_time = self.age(flight) <= self.longest();
        let is_possible = has_consent && self.seen.available >= LEAST_AVAILABLE;
        let may = self.ledger.goes_on(flight) && is_possible && is_in_time;
        if !may {
            self.forget(flight);
        }
        may
    }

    /// Whether one more restart or eviction may begin within this minute. Counts it.
    fn take_start(&mut self) -> bool {
        let is_free = self.ledger.starts.len() < self.pace.per_minute;
        if is_free {
            self.ledger.starts.push(self.now);
        }
        is_free
    }

    fn age(&self, flight: &Flight) -> SignedDuration {
        self.now.duration_since(flight.at)
    }

    /// How long a restart may take in all, however often its workload makes progress: it would keep its place.
    fn longest(&self) -> SignedDuration {
        self.pace.progress * LONGEST
    }

    /// Ends the restarts in the namespace, or lets those of the next generation begin here.
    fn stop(&mut self, flight: &Flight, reason: String) {
        let workload = flight.workload.clone();
        let Some(wave) = self.ledger.waves.get_mut(&flight.change.instrumentation) else { return };
        wave.failed.insert(workload.clone());
        let is_own = workload.namespace == wave.namespace;
        let Some(trial) = self.ledger.trial_of(&flight.change) else { return };
        let is_for_all = is_own && !trial.is_proven;
        trial.stops.push(Stop { workload, reason, at: self.now, is_for_all });
    }
}
