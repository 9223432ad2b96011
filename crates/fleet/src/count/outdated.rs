//! What restarts need of the pods of a workload.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    rc::Rc,
};

use jiff::Timestamp;
use otel_webhook_inject::{language::LANGUAGES, pause::Pause};

use crate::{
    census::Member,
    next::{NextAgent, NextPod},
    workload::Workload,
};

/// A pod that a restart would replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldPod {
    /// Its name.
    pub name: String,
    /// Its UID: an eviction must not reach its successor of the same name.
    pub uid: String,
    /// When it was created.
    pub created: Timestamp,
}

/// The pods of a workload, as far as restarts need them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadPods {
    /// The workload.
    pub workload: Workload,
    /// `namespace/name` of the Instrumentation that outdated pods would get.
    pub instrumentation: Option<String>,
    /// The configuration that a new pod would get: its languages with their hashes; `None` if it would get no agent.
    pub config: Option<String>,
    /// The pods that a restart would bring up to date, the oldest first.
    pub outdated: Vec<OldPod>,
    /// How many of them fail because of what injection added.
    pub failing: usize,
    /// The number of pods of which it is not known whether they are up to date.
    pub unconfirmed: usize,
    /// What pauses injection into new pods, if anything does.
    pub paused: Option<Pause>,
    /// When the newest pod was created.
    pub newest: Option<Timestamp>,
}

/// The agents that a new pod of a template would get, if nothing were paused: `namespace/name` of the Instrumentation and the hash, by language.
pub(super) type NewAgents = Rc<BTreeMap<&'static str, (String, Box<str>)>>;

/// Returns the agents of a new pod.
pub(super) fn agents(next: &NextPod) -> NewAgents {
    let agent = |(language, next): (&&'static str, &NextAgent)| match next {
        NextAgent::Agent(used) | NextAgent::Paused { used, .. } => {
            Some((*language, (used.name.to_string(), used.hash.clone())))
        }
        NextAgent::Skipped { .. } | NextAgent::Unknown(_) => None,
    };
    Rc::new(next.languages.iter().filter_map(agent).collect())
}

/// The pods of a workload as they are counted.
#[derive(Default)]
pub(super) struct Replaceable {
    outdated: Vec<OldPod>,
    /// The languages in which they are.
    languages: BTreeSet<&'static str>,
    failing: usize,
    unconfirmed: usize,
    paused: Option<Pause>,
    /// When the newest pod was created, and what a new one of its template would get. Templates that are older are not
    /// used again.
    newest: Option<(Timestamp, NewAgents)>,
}

impl Replaceable {
    /// Counts a pod. `outdated` are the languages that a restart would bring up to date.
    pub(super) fn add(
        &mut self,
        member: &Member,
        outdated: &[&'static str],
        is_unconfirmed: bool,
        is_failing: bool,
        agents: &NewAgents,
        paused: Option<&Pause>,
    ) {
        if self.paused.is_none() {
            self.paused = paused.cloned();
        }
        if !outdated.is_empty() {
            self.failing += usize::from(is_failing);
            let (name, uid) = (member.name.to_string(), member.uid.to_string());
            self.outdated.push(OldPod { name, uid, created: member.created });
            self.languages.extend(outdated);
        }
        self.unconfirmed += usize::from(is_unconfirmed);
        // Of templates whose pods are equally old, always the same one.
        if self.newest.as_ref().is_none_or(|(at, known)| (*at, known) < (member.created, agents)) {
            self.newest = Some((member.created, Rc::clone(agents)));
        }
    }

    /// Returns what restarts need.
    pub(super) fn of(self, workload: Workload) -> WorkloadPods {
        let Self { mut outdated, languages, failing, unconfirmed, paused, newest } = self;
        outdated.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
        let (newest, agents) = newest.unzip();
        let agents = agents.unwrap_or_default();
        let mut config = String::new();
        let mut instrumentation = None;
        for language in LANGUAGES.iter().map(|row| row.name) {
            let Some((name, hash)) = agents.get(language) else { continue };
            let separator = if config.is_empty() { "" } else { "," };
            let _ = write!(config, "{separator}{language}={hash}");
            if languages.contains(language) {
                instrumentation.get_or_insert_with(|| name.clone());
            }
        }
        let config = Some(config).filter(|config| !config.is_empty());
        WorkloadPods { workload, instrumentation, config, outdated, failing, unconfirmed, paused, newest }
    }
}
