//! The cluster: Instrumentations, workloads with their pods, and the ConfigMap of the ledger; and what happens to it at
//! random.

mod checks;
mod pods;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use otel_webhook_testkit::generated::choices::Choices;

use crate::{
    restart::{Change, Consent, Fit, Instrumentation, Ledger, ObservedWorkload, Verdict, Webhook},
    workload::Workload,
};
use checks::Log;
use pods::{OTHER_VERSION, Pod, Replicas};

/// How many seconds a view may be late.
const LAG: usize = 3;

/// The first second.
const EPOCH: i64 = 1_700_000_000;

/// An Instrumentation.
struct Configured {
    present: Instrumentation,
    /// Its specification. With the default image, it is the configuration of pods.
    spec: String,
    /// Since when injection by it is paused.
    paused: Option<i64>,
}

impl Configured {
    /// What a pod gets by a program with this default image.
    fn config(&self, image: usize) -> String {
        format!("{}.{image}", self.spec)
    }
}

/// The programs of the installation. Each has the default image of its version.
struct Installation {
    controller: usize,
    /// The replicas of the webhook, and whether each can be reached.
    replicas: [(usize, bool); 2],
    /// The newest image.
    newest: usize,
    /// When which program is upgraded: the controller, or a replica.
    upgrades: Vec<(i64, Option<usize>)>,
    /// Whether the controller can list the replicas.
    is_listed: bool,
}

impl Installation {
    fn upgrade(&mut self, second: i64) {
        for (_, program) in self.upgrades.extract_if(.., |(at, _)| *at <= second) {
            match program {
                None => self.controller = self.newest,
                Some(replica) => self.replicas[replica].0 = self.newest,
            }
        }
    }
}

pub struct World {
    seed: u64,
    second: i64,
    configured: Vec<Configured>,
    /// The specifications and default images that pods do not start with.
    bad: BTreeSet<String>,
    /// The workloads that a policy protects from changes.
    refused: BTreeSet<Workload>,
    workloads: Vec<Replicas>,
    installation: Installation,
    ledger: (String, u64),
    views: VecDeque<(i64, Vec<(ObservedWorkload, u64)>)>,
    log: Log,
    next_uid: u64,
}

impl World {
    /// A cluster of 12 workloads in 4 namespaces, with 2 Instrumentations.
    pub fn new(choices: &mut Choices, seed: u64) -> Self {
        let instrumentation = |number: usize| Configured {
            present: Instrumentation {
                uid: format!("uid-{number}"),
                namespace: format!("ns-{number}"),
                generation: 1,
                resume: None,
            },
            spec: "v1:0".to_owned(),
            paused: None,
        };
        let mut world = Self {
            seed,
            second: EPOCH,
            configured: (0..2).map(instrumentation).collect(),
            bad: BTreeSet::new(),
            refused: BTreeSet::new(),
            workloads: Vec::new(),
            installation: Installation {
                controller: 0,
                replicas: [(0, true); 2],
                newest: 0,
                upgrades: Vec::new(),
                is_listed: seed % 4 != 3,
            },
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
            for replica in 0..replicas {
                let uid = world.uid();
                // An earlier version of the program has injected one of them.
                let is_known = replica > 0 || number % 4 != 2;
                made.pods.push(Pod::ready(uid, EPOCH, if is_known { "v1:0.0" } else { OTHER_VERSION }));
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
        self.installation.upgrade(self.second);
        for index in 0..self.workloads.len() {
            let configured = &self.configured[self.workloads[index].instrumentation];
            // The API server sends the review to any replica.
            let (image, is_up) = self.installation.replicas[(self.next_uid % 2) as usize];
            let injected = (is_up && configured.paused.is_none()).then(|| configured.config(image));
            let uid = self.uid();
            let workload = &mut self.workloads[index];
            workload.work(self.second, uid, injected, &self.bad);
        }
        self.log.observe(self.second, &self.workloads);
    }

    /// What a watch shows: it may be late.
    pub fn view(&self) -> Vec<(ObservedWorkload, u64)> {
        self.views.front().map(|(_, view)| view.clone()).unwrap_or_default()
    }

    fn look(&self) -> Vec<(ObservedWorkload, u64)> {
        let of = |workload: &Replicas| {
            let configured = &self.configured[workload.instrumentation];
            let is_paused = configured.paused.is_some();
            let config = configured.config(self.installation.controller);
            (workload.seen(&configured.present.uid, &config, is_paused), workload.version)
        };
        self.workloads.iter().map(of).collect()
    }

    pub fn instrumentations(&self) -> Vec<Instrumentation> {
        self.configured.iter().map(|one| one.present.clone()).collect()
    }

    /// What the replicas answer about the configuration of a workload's new pods: none if they agree, or are unknown.
    pub fn ask(&self, workload: &Workload, config: &str, webhook: &mut Webhook) {
        let configured = &self.configured[self.workloads[self.index(workload)].instrumentation];
        for (image, is_up) in self.installation.replicas.iter().filter(|_| self.installation.is_listed) {
            if !is_up {
                webhook.unavailable = Some("a replica does not answer".to_owned());
            } else if configured.config(*image) != config {
                let key = (workload.namespace.clone(), config.to_owned());
                webhook.differs.insert(key, "a replica has another one".to_owned());
            }
        }
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
        let value = Some(change.value());
        assert_ne!(workload.annotation, value, "seed {}: {} is as it was", self.seed, workload.workload);
        workload.annotation = value;
        workload.change_template(self.second);
        true
    }

    /// Whether a policy denies that the template of a workload is changed.
    pub fn is_refused(&mut self, workload: &Workload, change: &Change) -> bool {
        let is_refused = self.refused.contains(workload);
        if is_refused {
            self.log.refused(self.seed, workload, change);
        }
        is_refused
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
        self.bad.clear();
        let Installation { newest, .. } = self.installation;
        self.installation.upgrades.clear();
        (self.installation.controller, self.installation.replicas) = (newest, [(newest, true); 2]);
        self.refused.clear();
        for configured in &mut self.configured {
            configured.paused = None;
            configured.present.generation += 1;
            configured.spec = format!("v1:{}-calm", configured.present.generation);
        }
        let mine: BTreeMap<_, _> = self.ledger().0.waves;
        for workload in &mut self.workloads {
            let failed = mine.values().any(|wave| wave.failed.contains(&workload.workload));
            workload.calm(failed);
        }
    }

    pub fn check_all_are_up_to_date(&self, verdicts: &[Verdict]) {
        for (workload, verdict) in self.workloads.iter().zip(verdicts) {
            let config = self.configured[workload.instrumentation].config(self.installation.controller);
            // Whether pods of another version are up to date is not known.
            let is_outdated = |pod: &&Pod| {
                let own = pod.config.as_deref();
                own != Some(&config) && own != Some(OTHER_VERSION)
            };
            let outdated = workload.pods.iter().filter(is_outdated).count();
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
        match choices.below(18) {
            0..=1 => self.configure(number % 2, choices),
            2..=3 => self.installation.replicas.iter_mut().for_each(|(_, is_up)| *is_up = true),
            4 => self.installation.replicas[number % 2].1 = false,
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
            14 => self.release(choices),
            // It has minReadySeconds of years.
            15 => self.change(number, |workload| workload.is_never_available = !workload.is_never_available),
            16 => {
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
        configured.spec = match choices.below(4) {
            0 => {
                let spec = format!("v1:{generation}-bad");
                self.bad.insert(spec.clone());
                spec
            }
            1 => format!("v1:{}", choices.below(usize::try_from(generation).expect("few"))),
            _ => format!("v1:{generation}"),
        };
    }

    /// A version with another default image is installed: the controller first, last, or in between.
    fn release(&mut self, choices: &mut Choices) {
        let Installation { newest, upgrades, .. } = &mut self.installation;
        *newest = if choices.below(4) == 0 { newest.saturating_sub(1) } else { *newest + 1 };
        if choices.below(4) == 0 {
            self.bad.insert(newest.to_string());
        }
        let mut programs = [None, Some(0), Some(1)];
        programs.rotate_left(choices.below(3));
        let at = |index: i64| self.second + index * 20;
        upgrades.extend((0..).map(at).zip(programs));
    }

    /// A GitOps tool writes a workload as it is in its repository.
    fn take_back(&mut self, number: usize) {
        let second = self.second;
        let workload = &mut self.workloads[number];
        if workload.is_git && workload.annotation.take().is_some() {
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
        let Some(wave) = self.ledger().0.waves.remove(&uid) else { return };
        for (config, trial) in wave.trials.into_iter().filter(|(_, trial)| !trial.stops.is_empty()) {
            let failed = trial.stops.into_iter().map(|stop| stop.workload);
            self.log.resumed((uid.clone(), wave.generation, config), failed, second);
        }
    }

    fn change(&mut self, number: usize, change: impl FnOnce(&mut Replicas)) {
        let workload = &mut self.workloads[number];
        change(workload);
        workload.version += 1;
    }
}
