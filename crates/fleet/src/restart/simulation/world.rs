//! The cluster: Instrumentations, workloads with their pods, and the ConfigMap of the ledger; and what happens to it at
//! random.

mod checks;
mod pods;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use otel_webhook_testkit::generated::choices::Choices;

use crate::{
    restart::{Change, Consent, Fit, Instrumentation, Ledger, Seen, Verdict},
    workload::Workload,
};
use checks::Log;
use pods::{Pod, Replicas};

/// How many seconds a view may be late.
const LAG: usize = 3;

/// The first second.
const EPOCH: i64 = 1_700_000_000;

/// An Instrumentation, and which of its configurations pods do not start with.
struct Configured {
    present: Instrumentation,
    config: String,
    /// Since when injection by it is paused.
    paused: Option<i64>,
}

pub struct World {
    seed: u64,
    second: i64,
    configured: Vec<Configured>,
    bad: BTreeSet<String>,
    /// The workloads that a policy protects from changes.
    refused: BTreeSet<Workload>,
    workloads: Vec<Replicas>,
    is_webhook_up: bool,
    ledger: (String, u64),
    views: VecDeque<(i64, Vec<(Seen, u64)>)>,
    log: Log,
    next_uid: u64,
}

impl World {
    /// A cluster of 12 workloads in 4 namespaces, with 2 Instrumentations.
    pub fn new(choices: &mut Choices, seed: u64) -> Self {
        let instrumentation = |number: usize| Configured {
            present: Instrumentation { uid: format!("uid-{number}"), generation: 1, resume: None },
            config: "v1:0".to_owned(),
            paused: None,
        };
        let mut world = Self {
            seed,
            second: EPOCH,
            configured: (0..2).map(instrumentation).collect(),
            bad: BTreeSet::new(),
            refused: BTreeSet::new(),
            workloads: Vec::new(),
            is_webhook_up: true,
            ledger: (Ledger::default().write(), 0),
            views: VecDeque::new(),
            log: Log::default(),
            next_uid: 0,
        };
        for number in 0..12_usize {
            let is_ordered = number % 5 == 4;
            let kind = if is_ordered { "StatefulSet" } else { "Deployment" };
            let workload = Workload::new(kind, &format!("ns-{}", number % 4), &format!("w-{number}"));
            let consent = if number % 6 == 5 { Consent::Evict } else { Consent::Rollout };
            let replicas = 2 + choices.below(3);
            let mut made = Replicas::new(workload, number % 2, consent, is_ordered, replicas);
            made.is_git = number % 3 == 1;
            for _ in 0..replicas {
                let uid = world.uid();
                made.pods.push(Pod::ready(uid, EPOCH, "v1:0"));
            }
            world.workloads.push(made);
        }
        world
    }

    fn uid(&mut self) -> String {
        self.next_uid += 1;
        format!("pod-{}", self.next_uid)
    }

    pub fn now(&self) -> Timestamp {
        time(self.second)
    }

    /// Lets controllers and kubelets work for some seconds.
    pub fn advance(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.second += 1;
            self.work();
            let view = self.look();
            self.views.push_back((self.second, view));
            while self.views.len() > LAG {
                self.views.pop_front();
            }
        }
    }

    fn work(&mut self) {
        for index in 0..self.workloads.len() {
            let configured = &self.configured[self.workloads[index].instrumentation];
            let is_injected = self.is_webhook_up && configured.paused.is_none();
            let injected = is_injected.then(|| configured.config.clone());
            let uid = self.uid();
            let workload = &mut self.workloads[index];
            workload.work(self.second, uid, injected, &self.bad);
        }
        self.log.observe(self.second, &self.workloads);
    }

    /// What a watch shows: it may be late.
    pub fn view(&self) -> Vec<(Seen, u64)> {
        self.views.front().map(|(_, view)| view.clone()).unwrap_or_default()
    }

    fn look(&self) -> Vec<(Seen, u64)> {
        let of = |workload: &Replicas| {
            let configured = &self.configured[workload.instrumentation];
            let is_paused = configured.paused.is_some();
            (workload.seen(&configured.present.uid, &configured.config, is_paused), workload.version)
        };
        self.workloads.iter().map(of).collect()
    }

    pub fn instrumentations(&self) -> Vec<Instrumentation> {
        self.configured.iter().map(|one| one.present.clone()).collect()
    }

    pub fn ledger(&self) -> (Ledger, u64) {
        (Ledger::read(&self.ledger.0).expect("a ledger"), self.ledger.1)
    }

    /// Replaces the ledger if its version is the present one, and returns the new one.
    pub fn write_ledger(&mut self, ledger: &Ledger, version: u64) -> Option<u64> {
        if version != self.ledger.1 {
            return None;
        }
        self.ledger = (ledger.write(), version + 1);
        Some(version + 1)
    }

    /// Patches template and record of a workload, if its version is still this one.
    pub fn roll_out(&mut self, workload: &Workload, change: &Change, version: u64) -> bool {
        let index = self.index(workload);
        if self.workloads[index].version != version {
            return false;
        }
        self.begins(index, change);
        let workload = &mut self.workloads[index];
        self.log.rollout(self.seed, &workload.workload, change);
        workload.record = Some(change.clone());
        workload.is_annotated = true;
        workload.change_template(self.second);
        true
    }

    /// Whether a policy denies that the template of a workload is changed.
    pub fn is_refused(&self, workload: &Workload) -> bool {
        self.refused.contains(workload)
    }

    /// Evicts a pod with this UID. Returns whether it is not refused, since the `PodDisruptionBudget` has no room.
    pub fn evict(&mut self, workload: &Workload, _pod: &str, uid: &str) -> bool {
        let index = self.index(workload);
        let evicted = &mut self.workloads[index];
        if evicted.budget_is_used_up {
            evicted.refused = Some("no disruption is allowed".to_owned());
            return false;
        }
        evicted.refused = None;
        let Some(at) = evicted.pods.iter().position(|pod| pod.uid == uid) else { return true };
        let is_failing = evicted.pods[at].is_failing;
        assert!(
            is_failing || evicted.available() >= 2,
            "seed {}: the only available pod of {workload} was evicted",
            self.seed
        );
        evicted.pods.remove(at);
        evicted.progress = self.second;
        let change = self.ledger().0.flights.into_iter().find(|flight| flight.workload == *workload);
        if let Some(flight) = change {
            self.begins(index, &flight.change);
        }
        true
    }

    fn index(&self, workload: &Workload) -> usize {
        let at = self.workloads.iter().position(|one| one.workload == *workload);
        at.expect("a workload of this cluster")
    }

    /// The number of restarts that were made.
    pub fn restarts(&self) -> usize {
        self.log.restarts()
    }

    /// Makes everything well: then each workload can be brought up to date.
    pub fn calm(&mut self) {
        self.is_webhook_up = true;
        self.bad.clear();
        self.refused.clear();
        for configured in &mut self.configured {
            configured.paused = None;
            configured.present.generation += 1;
            configured.config = format!("v1:{}-calm", configured.present.generation);
        }
        let mine: BTreeMap<_, _> = self.ledger().0.waves;
        for workload in &mut self.workloads {
            let failed = mine.values().any(|wave| wave.failed.contains(&workload.workload));
            workload.calm(failed);
        }
    }

    pub fn check_all_are_up_to_date(&self, verdicts: &[Verdict]) {
        for (workload, verdict) in self.workloads.iter().zip(verdicts) {
            let config = &self.configured[workload.instrumentation].config;
            let outdated = workload.pods.iter().filter(|pod| pod.config.as_ref() != Some(config)).count();
            assert!(
                outdated == 0,
                "seed {}: {outdated} of {} pods of {} are outdated: {verdict:?}",
                self.seed,
                workload.pods.len(),
                workload.workload,
            );
        }
    }
}

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("within range")
}

impl World {
    /// Lets one thing happen.
    pub fn disturb(&mut self, choices: &mut Choices) {
        let number = choices.below(12);
        match choices.below(15) {
            0..=1 => self.configure(number % 2, choices),
            2..=3 => self.is_webhook_up = true,
            4 => self.is_webhook_up = false,
            5..=6 => self.take_back(number),
            7 => self.change(number, |workload| workload.budget_is_used_up = !workload.budget_is_used_up),
            8 => self.change(number, |workload| {
                workload.fit = if workload.fit == Fit::Fits { Fit::Paused } else { Fit::Fits };
            }),
            9 => self.resume(number % 2),
            10 => self.change(number, |workload| {
                workload.consent = match workload.consent {
                    Consent::Rollout if !workload.is_ordered => Consent::Evict,
                    _ => Consent::Rollout,
                };
            }),
            11 => self.pause(number % 2),
            12 => self.configured[number % 2].paused = None,
            13 => {
                let workload = self.workloads[number].workload.clone();
                if !self.refused.remove(&workload) {
                    self.refused.insert(workload);
                }
            }
            _ => self.deploy(number),
        }
    }

    /// Somebody changes an Instrumentation: to a new configuration, one that pods do not start with, or an earlier one.
    fn configure(&mut self, number: usize, choices: &mut Choices) {
        let configured = &mut self.configured[number];
        configured.present.generation += 1;
        let generation = configured.present.generation;
        configured.config = match choices.below(4) {
            0 => {
                let config = format!("v1:{generation}-bad");
                self.bad.insert(config.clone());
                config
            }
            1 => format!("v1:{}", choices.below(usize::try_from(generation).expect("few"))),
            _ => format!("v1:{generation}"),
        };
    }

    /// A GitOps tool writes a workload as it is in its repository.
    fn take_back(&mut self, number: usize) {
        let second = self.second;
        let workload = &mut self.workloads[number];
        if workload.is_git && workload.is_annotated {
            workload.is_annotated = false;
            workload.record = None;
            workload.change_template(second);
            self.log.taken_back(&self.workloads[number].workload);
        }
    }

    /// Somebody rolls out a new version of the application.
    fn deploy(&mut self, number: usize) {
        let second = self.second;
        self.workloads[number].change_template(second);
    }

    /// Somebody pauses injection by an Instrumentation.
    fn pause(&mut self, number: usize) {
        self.configured[number].paused.get_or_insert(self.second);
    }

    fn resume(&mut self, number: usize) {
        let second = self.second;
        let configured = &mut self.configured[number];
        configured.present.resume = Some(format!("at {second}"));
        let uid = configured.present.uid.clone();
        let wave = self.ledger().0.waves.remove(&uid);
        if let Some(wave) = wave.filter(|wave| wave.stop.is_some()) {
            self.log.resumed((uid, wave.generation), wave.failed.into_iter(), second);
        }
    }

    fn change(&mut self, number: usize, change: impl FnOnce(&mut Replicas)) {
        let workload = &mut self.workloads[number];
        change(workload);
        workload.version += 1;
    }
}
