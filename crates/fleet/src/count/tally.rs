//! Workloads and their languages, as their pods are counted, and what restarts need of those pods.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    rc::Rc,
};

use jiff::Timestamp;
use otel_webhook_inject::{language::LANGUAGES, pause::Pause};

use super::{
    PodOf,
    failures::{self, Failures},
};
use crate::{
    advice::NotAdvised,
    cause::{Cause, UNKNOWN_HASH},
    heard::Data,
    next::{NextAgent, NextPod},
    report::{Counts, DataRow, LanguageRow, PausedRow, WorkloadRow},
    silent::Likely,
    state::{Missed, State},
    workload::Workload,
};

/// The code of pods that a restart does not help.
const NOT_SELECTED: &str = Missed::NotSelected.code();

/// One language of one pod.
pub(super) struct Found {
    pub(super) state: State,
    pub(super) cause: Cause,
    pub(super) instrumentation: Option<String>,
    pub(super) image: Option<String>,
    /// Whether the pod has an agent that a new one would not get, because injection is paused.
    pub(super) is_paused_agent: bool,
    /// Whether the pod has an agent that a new one would not get for another reason.
    pub(super) is_lost: bool,
    /// The code of why the pod fails because of it.
    pub(super) failing: Option<&'static str>,
    /// Whether its data arrives; `None` where that is not asked.
    pub(super) data: Option<Data>,
    /// Why it does not, if the pod shows it.
    pub(super) silence: Option<Likely>,
}

/// A workload as it is counted.
#[derive(Default)]
pub(super) struct Tally {
    pods: usize,
    with_agent: usize,
    failing: usize,
    languages: BTreeMap<&'static str, LanguageTally>,
    /// Whether a new pod in place of one of them would lack its agent, because injection is paused.
    loses_agents: bool,
    /// Why no restart is advised: what a new pod would lack, or why one with the current configuration fails.
    not_advised: Option<NotAdvised>,
    failures: Failures,
    replaceable: Replaceable,
}

#[derive(Default)]
struct LanguageTally {
    pods: Counts,
    worst: Option<(State, Cause)>,
    since: Option<Timestamp>,
    instrumentation: Option<String>,
    images: Vec<(String, usize)>,
    data: Option<DataRow>,
}

/// Orders what is found of pods by how bad it is. The first of equally bad ones in the order of names stands for all,
/// so that the order of pods does not matter.
fn order<'f>(state: State, cause: &'f Cause, instrumentation: Option<&'f str>) -> impl Ord + 'f {
    (state, Reverse((cause.code, &*cause.message)), instrumentation.map(Reverse))
}

impl LanguageTally {
    fn add(&mut self, found: Found, created: Timestamp) {
        self.pods.add(found.state);
        self.pods.failing += usize::from(found.failing.is_some());
        self.pods.hear(found.data);
        if let Some(data) = found.data {
            let row = DataRow::add(&mut self.data, data);
            row.cause = row.cause.take().or(found.silence);
        }
        if let Some(image) = found.image {
            match self.images.iter_mut().find(|(known, _)| *known == image) {
                Some((_, count)) => *count += 1,
                None => self.images.push((image, 1)),
            }
        }
        let state = self.worst.as_ref().map(|(state, _)| *state);
        if state == Some(found.state) {
            self.since = self.since.min(Some(created));
        } else if state < Some(found.state) {
            self.since = Some(created);
        }
        let is_worst = self.worst.as_ref().is_none_or(|(state, cause)| {
            let known = order(*state, cause, self.instrumentation.as_deref());
            order(found.state, &found.cause, found.instrumentation.as_deref()) > known
        });
        if is_worst {
            self.worst = Some((found.state, found.cause));
            self.instrumentation = found.instrumentation;
        }
    }

    fn row(mut self, language: &'static str) -> LanguageRow {
        self.images.sort();
        // Reports are kept.
        self.images.shrink_to_fit();
        let (state, cause) = self.worst.unwrap_or((State::Injected, Cause::NONE));
        LanguageRow {
            language,
            pods: self.pods,
            state,
            reason: (!cause.code.is_empty()).then_some(cause.code),
            message: (!cause.message.is_empty()).then_some(cause.message),
            instrumentation: self.instrumentation,
            images: self.images,
            since: self.since,
            data: self.data,
        }
    }
}

impl Tally {
    /// Counts a pod with what was found of its languages, and what fails in it. `agents` are those of a new pod, if
    /// nothing were paused.
    pub(super) fn add(
        &mut self,
        pod: PodOf<'_>,
        found: Vec<(&'static str, Found)>,
        failures: &[failures::Found<'_>],
        agents: &NewAgents,
        paused: Option<&Pause>,
    ) {
        self.pods += 1;
        self.with_agent += usize::from(pod.member.agents().is_some_and(|agents| !agents.is_empty()));
        let is_failing = found.iter().any(|(_, one)| one.failing.is_some());
        self.failing += usize::from(is_failing);
        for failure in failures {
            let Some((_, one)) = found.iter().find(|(language, _)| *language == failure.language) else {
                continue;
            };
            if failure.is_counted() && one.state == State::Injected {
                self.not_advised.get_or_insert_with(|| NotAdvised::agent_fails(pod.name, failure.code()));
            }
            self.failures.add(pod, failure, one.state, one.instrumentation.as_deref());
        }
        let outdated = found.iter().filter(|(_, one)| one.is_replaceable());
        let outdated: Vec<_> = outdated.map(|(language, _)| *language).collect();
        let is_other_version = |one: &Found| one.cause.code == UNKNOWN_HASH;
        let is_unconfirmed =
            found.iter().any(|(_, one)| one.state == State::Unconfirmed && !is_other_version(one));
        if found.iter().any(|(_, one)| is_other_version(one)) {
            self.replaceable.unknown = self.replaceable.unknown.max(Some(pod.member.created));
        }
        let is_missed = found.iter().any(|(_, one)| one.is_replaceable() && one.state == State::Missed);
        self.replaceable.missed += usize::from(is_missed);
        self.replaceable.add(pod, &outdated, is_unconfirmed, is_failing, agents, paused);
        self.loses_agents |= found.iter().any(|(_, one)| one.is_paused_agent);
        for (language, one) in found {
            if one.is_lost {
                self.not_advised
                    .get_or_insert_with(|| NotAdvised::removes_agent(language, &one.cause.message));
            }
            self.languages.entry(language).or_default().add(one, pod.member.created);
        }
    }

    /// Returns whether no pod was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.pods == 0
    }

    /// Returns what is told of the workload, and what restarts need of it.
    pub(super) fn rows(self, workload: Workload) -> (WorkloadRow, WorkloadPods) {
        let Self {
            pods,
            with_agent,
            failing,
            mut languages,
            failures,
            loses_agents,
            not_advised,
            replaceable,
        } = self;
        let mut of = |language: &'static str| Some(languages.remove(language)?.row(language));
        let mut languages: Vec<_> = LANGUAGES.iter().filter_map(|row| of(row.name)).collect();
        languages.shrink_to_fit();
        let state = languages.iter().map(|row| row.state).max().unwrap_or(State::Injected);
        let for_restarts = replaceable.of(workload.clone());
        let paused = for_restarts.paused.as_ref().map(|by| PausedRow {
            by: by.to_string(),
            command: loses_agents.then(|| workload.restart_command()).flatten(),
        });
        let is_not_selected =
            languages.iter().any(|row| row.state.is_outdated() && row.reason == Some(NOT_SELECTED));
        let of_pause = for_restarts.paused.as_ref().map(NotAdvised::paused);
        let of_selection = || is_not_selected.then(NotAdvised::not_selected);
        let not_advised = of_pause.or_else(of_selection).or(not_advised).filter(|_| state.is_outdated());
        let mut row = WorkloadRow {
            workload,
            pods,
            with_agent,
            state,
            languages,
            failing,
            failures: failures.rows(),
            command: None,
            not_advised: None,
            paused,
            restart: None,
        };
        row.command = state.is_outdated().then(|| row.workload.restart_command()).flatten();
        row.withhold(not_advised);
        (row, for_restarts)
    }
}

impl Found {
    /// Whether a restart brings it up to date. Pods that the webhook is not called for stay as they are.
    fn is_replaceable(&self) -> bool {
        self.state.is_outdated() && self.cause.code != NOT_SELECTED
    }
}

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
    /// `namespace/name` of the Instrumentations of that configuration.
    pub instrumentations: Vec<String>,
    /// The pods that a restart would bring up to date, the oldest first.
    pub outdated: Vec<OldPod>,
    /// How many of them lack an agent that a new pod would get.
    pub missed: usize,
    /// How many of them fail because of what injection added.
    pub failing: usize,
    /// The number of pods of which it is not known yet whether they are up to date.
    pub unconfirmed: usize,
    /// When the newest of the pods was created whose hash is of another version. It stays unknown whether they are up to
    /// date.
    pub unknown: Option<Timestamp>,
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
    missed: usize,
    /// The languages in which they are.
    languages: BTreeSet<&'static str>,
    failing: usize,
    unconfirmed: usize,
    unknown: Option<Timestamp>,
    paused: Option<Pause>,
    /// When the newest pod was created, and what a new one of its template would get. Templates that are older are not
    /// used again.
    newest: Option<(Timestamp, NewAgents)>,
}

impl Replaceable {
    /// Counts a pod. `outdated` are the languages that a restart would bring up to date.
    pub(super) fn add(
        &mut self,
        PodOf { name, member, .. }: PodOf<'_>,
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
            let (name, uid) = (name.to_owned(), member.uid.to_string());
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
        let Self { mut outdated, missed, languages, failing, unconfirmed, unknown, paused, newest } = self;
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
        let instrumentations: BTreeSet<&String> = agents.values().map(|(name, _)| name).collect();
        WorkloadPods {
            workload,
            instrumentation,
            config,
            instrumentations: instrumentations.into_iter().cloned().collect(),
            outdated,
            missed,
            failing,
            unconfirmed,
            unknown,
            paused,
            newest,
        }
    }
}
