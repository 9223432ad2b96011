//! The result of a survey: a row per workload.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::cli::{
    check::{
        agents::{self, Agent},
        files::File,
    },
    cluster::reader::NotTold,
};
use crate::{
    registration::Labels,
    subject::Subject,
    unread::{Unread, Unsure},
};
use otel_webhook_fleet::{
    failing::{self, Failure, Part},
    injected::{self, By},
};
use otel_webhook_inject::{Finding, mistakes::Mistake, pause::Pause};

/// The result of a survey.
#[derive(Debug, Default)]
pub struct Survey {
    /// What pauses injection.
    pub paused: Vec<Pause>,
    /// Labels of each namespace.
    pub namespaces: BTreeMap<String, Labels>,
    /// The findings for namespaces that opt in.
    pub asking: Vec<(String, Vec<Finding>)>,
    /// Annotations and labels of namespaces that have no effect.
    pub mistakes: Vec<(Subject, Mistake)>,
    /// Instrumentations that cannot be used, with their problems.
    pub unusable: Vec<(Subject, String)>,
    /// Namespaces that opt in to the operator's collector sidecar.
    pub collectors: BTreeSet<String>,
    /// The workloads, by namespace, kind and name.
    pub workloads: Vec<Surveyed>,
    /// What the user may not read, of what the results depend on.
    pub unread: Unread,
    /// Whether the user may not read the webhook configurations.
    pub is_registration_unread: bool,
    /// The requests that failed.
    pub not_told: Vec<NotTold>,
}

/// One workload.
#[derive(Debug)]
pub struct Surveyed {
    /// The workload.
    pub subject: Subject,
    /// Labels of its pods.
    pub labels: Labels,
    /// The languages that its template opts in to, regardless of the namespace.
    pub own: Vec<&'static str>,
    /// Whether it opts in to the operator's collector sidecar; none if the namespace decides.
    pub collector: Option<bool>,
    /// The result for a new pod.
    pub next: Next,
    /// The languages with an unknown result, since the user may not read what it depends on.
    pub unsure: Vec<Unsure>,
    /// The agents of a new pod.
    pub agents: Vec<Agent>,
    /// The objects that a new pod mounts for its exporters.
    pub files: Vec<File>,
    /// How its pods are replaced.
    pub replaced: Replaced,
    /// Its pods.
    pub pods: Pods,
    /// Its annotations and labels that have no effect.
    pub mistakes: Vec<Mistake>,
}

/// The result for a new pod.
#[derive(Debug)]
pub enum Next {
    /// The findings.
    Decided(Vec<Finding>),
    /// The pod cannot be read.
    Unreadable(String),
    /// Its template is not known: another controller creates the pods.
    Unknown,
}

/// The running pods of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pods {
    /// The number of pods.
    pub count: usize,
    /// Whether they could not be counted, since the user may not read them or their owners.
    pub is_unknown: bool,
    /// The number of pods with a language, by the webhook that injected it.
    pub have: BTreeMap<(&'static str, By), usize>,
    /// The number of pods with an agent.
    pub agents: BTreeMap<Agent, usize>,
    /// The number of pods that were reviewed and skipped for a language, by the code of the reason.
    pub skipped: BTreeMap<(&'static str, String), usize>,
    /// The containers that cannot start because of what injection added, each kind with the first of its failures and
    /// the number of pods.
    pub failing: Vec<(Failure, usize)>,
}

/// How the pods of a workload are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replaced {
    /// By a restart.
    #[default]
    ByRestart,
    /// By a restart, once it is resumed.
    Paused,
    /// By its controller, after someone deletes them.
    OnDelete,
}

impl Pods {
    /// Returns the number of pods with a language, from any webhook.
    pub fn with(&self, language: &str) -> usize {
        self.have.iter().filter(|((own, _), _)| *own == language).map(|(_, count)| count).sum()
    }

    /// Counts a pod.
    pub fn add(&mut self, pod: &Value) {
        self.count += 1;
        for has in injected::languages(pod) {
            *self.have.entry(has).or_default() += 1;
        }
        let languages: Vec<_> = injected::languages(pod).into_iter().map(|(language, _)| language).collect();
        let failures = failing::of(pod, &languages).failures.into_iter();
        // Whether the agent is why an application ends is found by comparing pods, which `status` does.
        for failure in failures.filter(|one| one.part != Part::Application) {
            match self.failing.iter_mut().find(|(first, _)| first.is_like(&failure)) {
                Some((_, count)) => *count += 1,
                None => self.failing.push((failure, 1)),
            }
        }
        for agent in agents::of_pod(pod) {
            *self.agents.entry(agent).or_default() += 1;
        }
        for skipped in agents::skipped(pod) {
            *self.skipped.entry(skipped).or_default() += 1;
        }
    }
}

impl Survey {
    /// Returns whether the cluster has no namespace that could be read.
    pub fn is_of_nowhere(&self) -> bool {
        self.namespaces.is_empty() && self.not_told.is_empty()
    }
}
