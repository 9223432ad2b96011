//! The result of a survey: a row per workload.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::{check::files::File, cluster::reader::NotTold};
use crate::{
    registration::Labels,
    subject::Subject,
    unread::{Unread, Unsure},
};
use otel_webhook_fleet::{
    injected::{Agent, By},
    pod::RunningPod,
    report::FailureRow,
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
    /// What fails in its pods.
    pub failures: Vec<FailureRow>,
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
    /// The number of pods with an agent.
    pub agents: BTreeMap<Agent, usize>,
    /// The number of pods that were reviewed and skipped for a language, by the code of the reason.
    pub skipped: BTreeMap<(String, String), usize>,
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
    /// Returns the agents of a language, with the number of pods.
    pub fn agents_of(&self, language: &str) -> impl Iterator<Item = (&Agent, usize)> {
        let own = self.agents.iter().filter(move |(agent, _)| agent.language == language);
        own.map(|(agent, count)| (agent, *count))
    }

    /// Returns the number of pods with a language, by the webhook that injected it.
    pub fn by(&self, language: &str) -> BTreeMap<By, usize> {
        let mut all = BTreeMap::new();
        for (agent, count) in self.agents_of(language) {
            *all.entry(agent.by).or_default() += count;
        }
        all
    }

    /// Returns the number of pods with a language, from any webhook.
    pub fn with(&self, language: &str) -> usize {
        self.agents_of(language).map(|(_, count)| count).sum()
    }

    /// Counts a pod.
    pub fn add(&mut self, pod: &RunningPod) {
        self.count += 1;
        for agent in pod.agents.iter().flatten() {
            *self.agents.entry(agent.clone()).or_default() += 1;
        }
        let mut languages = BTreeSet::new();
        for (language, code) in &pod.skipped {
            if languages.insert(language) {
                *self.skipped.entry((language.clone(), code.clone())).or_default() += 1;
            }
        }
    }
}

impl Survey {
    /// Returns whether the cluster has no namespace that could be read.
    pub fn is_of_nowhere(&self) -> bool {
        self.namespaces.is_empty() && self.not_told.is_empty()
    }
}
