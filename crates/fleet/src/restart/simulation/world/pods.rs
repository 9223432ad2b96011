//! A workload and its pods, as the controllers of Kubernetes and the kubelet treat them.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use otel_webhook_inject::pause::Pause;

use super::time;
use crate::{
    count::OldPod,
    restart::{Change, Consent, FailingPod, Fit, Health, ObservedWorkload},
    workload::Workload,
};

/// A hash of another version.
pub const OTHER_VERSION: &str = "v0:0.0";

/// How many seconds a pod takes to start.
const START: i64 = 8;

#[derive(Clone)]
pub struct Pod {
    pub uid: String,
    pub created: i64,
    /// The hash that it has; none if it was missed.
    pub config: Option<String>,
    pub template: u64,
    pub is_ready: bool,
    pub is_failing: bool,
}

impl Pod {
    pub fn ready(uid: String, created: i64, config: &str) -> Self {
        let config = Some(config.to_owned());
        Self { uid, created, config, template: 0, is_ready: true, is_failing: false }
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact about the workload")]
pub struct Replicas {
    pub workload: Workload,
    pub instrumentation: usize,
    pub consent: Consent,
    pub is_ordered: bool,
    pub fit: Fit,
    /// A GitOps tool takes annotations back.
    pub is_git: bool,
    pub budget_is_used_up: bool,
    pub refused: Option<String>,
    pub pods: Vec<Pod>,
    pub version: u64,
    pub record: Option<Change>,
    /// The value in its template.
    pub annotation: Option<String>,
    /// Its pods have to be ready for years before they are available.
    pub is_never_available: bool,
    /// When pods or template changed last.
    pub progress: i64,
    template: u64,
    wanted: usize,
}

impl Replicas {
    pub fn new(
        workload: Workload,
        instrumentation: usize,
        consent: Consent,
        is_ordered: bool,
        wanted: usize,
    ) -> Self {
        Self {
            workload,
            instrumentation,
            consent,
            is_ordered,
            fit: Fit::Fits,
            is_git: false,
            budget_is_used_up: false,
            refused: None,
            pods: Vec::new(),
            version: 0,
            record: None,
            annotation: None,
            is_never_available: false,
            progress: 0,
            template: 0,
            wanted,
        }
    }

    /// Begins a rollout.
    pub fn change_template(&mut self, second: i64) {
        self.template += 1;
        self.version += 1;
        self.progress = second;
    }

    pub fn available(&self) -> usize {
        self.pods.iter().filter(|pod| pod.is_ready).count()
    }

    pub fn is_healthy(&self) -> bool {
        let is_current = |pod: &Pod| pod.is_ready && pod.template == self.template;
        !self.is_never_available && self.pods.len() == self.wanted && self.pods.iter().all(is_current)
    }

    /// A second of kubelet and controller.
    pub fn work(&mut self, second: i64, uid: String, injected: Option<String>, bad: &BTreeSet<String>) {
        for pod in &mut self.pods {
            let starts = !pod.is_ready && !pod.is_failing && second - pod.created >= START;
            if starts {
                let mut parts = pod.config.iter().flat_map(|config| config.split('.'));
                pod.is_failing = parts.any(|part| bad.contains(part));
                pod.is_ready = !pod.is_failing;
                self.progress = second;
            }
        }
        let template = self.template;
        let is_new = |pod: &Pod| pod.template == template;
        let new =
            Pod { uid, created: second, config: injected, template, is_ready: false, is_failing: false };
        let is_starting = self.pods.iter().any(|pod| !pod.is_ready && (is_new(pod) || self.is_ordered));
        let old = self.pods.iter().position(|pod| !is_new(pod));
        if self.pods.len() < self.wanted {
            self.pods.push(new);
            self.progress = second;
            return;
        }
        let (Some(old), false) = (old, is_starting) else { return };
        if self.is_ordered {
            self.pods.remove(old);
        } else if self.pods.len() > self.wanted {
            let failing = self.pods.iter().position(|pod| !is_new(pod) && !pod.is_ready);
            self.pods.remove(failing.unwrap_or(old));
            return;
        }
        self.pods.push(new);
        self.progress = second;
    }

    /// What the controller sees of it.
    pub fn seen(&self, instrumentation: &str, config: &str, is_paused: bool) -> ObservedWorkload {
        let is_unknown = |pod: &&Pod| pod.config.as_deref() == Some(OTHER_VERSION);
        // A pod without an agent is skipped while injection is paused.
        let is_outdated = |pod: &&Pod| match pod.config.as_deref() {
            Some(own) => own != config && own != OTHER_VERSION,
            None => !is_paused,
        };
        let outdated = self.pods.iter().filter(is_outdated);
        let old =
            |pod: &Pod| OldPod { name: pod.uid.clone(), uid: pod.uid.clone(), created: time(pod.created) };
        ObservedWorkload {
            workload: self.workload.clone(),
            consent: Ok(self.consent),
            instrumentation: Some(instrumentation.to_owned()),
            config: Some(config.to_owned()),
            is_failing: outdated.clone().any(|pod| pod.is_failing),
            missed: outdated.clone().filter(|pod| pod.config.is_none()).count(),
            outdated: outdated.map(old).collect(),
            unconfirmed: 0,
            unknown: self.pods.iter().filter(is_unknown).map(|pod| time(pod.created)).max(),
            paused: is_paused.then(|| Pause::Namespace(self.workload.namespace.as_str().into())),
            fit: self.fit.clone(),
            is_ordered: self.is_ordered,
            health: self.health(),
            available: self.available(),
            newest: self.pods.iter().map(|pod| time(pod.created)).max(),
            refused: self.refused.clone(),
            record: self.record.clone(),
        }
    }

    fn health(&self) -> Health {
        if self.is_healthy() {
            return Health::Healthy;
        }
        let failing = self.pods.iter().filter(|pod| pod.is_failing).max_by_key(|pod| pod.created);
        let failing = failing.map(|pod| FailingPod {
            name: pod.uid.clone(),
            uid: pod.uid.clone(),
            created: time(pod.created),
            reason: "CrashLoopBackOff".to_owned(),
        });
        let days = if self.is_never_available { 365 * 50 } else { 0 };
        let min_ready = SignedDuration::from_hours(24 * days);
        failing.map_or(Health::Progressing { since: time(self.progress), min_ready }, Health::Failing)
    }

    /// Makes it well; where a restart has failed, its pods go on failing until another restart.
    pub fn calm(&mut self, has_failed: bool) {
        self.is_git = false;
        self.budget_is_used_up = false;
        self.is_never_available = false;
        self.fit = Fit::Fits;
        if !has_failed {
            self.pods.iter_mut().for_each(|pod| pod.is_failing = false);
        }
    }
}
