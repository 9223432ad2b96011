//! Workloads and their languages, as their pods are counted.

use std::{cmp::Reverse, collections::BTreeMap};

use jiff::Timestamp;
use otel_webhook_inject::{language::LANGUAGES, pause::Pause};

use super::{
    failures::{self, Failures},
    outdated::{NewAgents, Replaceable, WorkloadPods},
};
use crate::{
    cause::Cause,
    census::Member,
    report::{Counts, LanguageRow, PausedRow, WorkloadRow},
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
    /// The code of why the pod fails because of it.
    pub(super) failing: Option<&'static str>,
}

/// A workload as it is counted.
#[derive(Default)]
pub(super) struct Tally {
    pods: usize,
    failing: usize,
    languages: BTreeMap<&'static str, LanguageTally>,
    /// Whether a new pod in place of one of them would lack its agent, because injection is paused.
    loses_agents: bool,
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
        }
    }
}

impl Tally {
    /// Counts a pod with what was found of its languages, and what fails in it. `agents` are those of a new pod, if
    /// nothing were paused.
    pub(super) fn add(
        &mut self,
        workload: &Workload,
        member: &Member,
        found: Vec<(&'static str, Found)>,
        failures: &[failures::Found<'_>],
        agents: &NewAgents,
        paused: Option<&Pause>,
    ) {
        self.pods += 1;
        let is_failing = found.iter().any(|(_, one)| one.failing.is_some());
        self.failing += usize::from(is_failing);
        for failure in failures {
            let Some((_, one)) = found.iter().find(|(language, _)| *language == failure.language) else {
                continue;
            };
            self.failures.add(workload, member, failure, one.state, one.instrumentation.as_deref());
        }
        let outdated = found.iter().filter(|(_, one)| one.is_replaceable());
        let outdated: Vec<_> = outdated.map(|(language, _)| *language).collect();
        let is_unconfirmed = found.iter().any(|(_, one)| one.state == State::Unconfirmed);
        self.replaceable.add(member, &outdated, is_unconfirmed, is_failing, agents, paused);
        self.loses_agents |= found.iter().any(|(_, one)| one.is_paused_agent);
        for (language, one) in found {
            self.languages.entry(language).or_default().add(one, member.created);
        }
    }

    /// Returns whether no pod was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.pods == 0
    }

    /// Returns what is told of the workload, and what restarts need of it.
    pub(super) fn rows(self, workload: Workload) -> (WorkloadRow, WorkloadPods) {
        let Self { pods, failing, mut languages, failures, loses_agents, replaceable } = self;
        let mut of = |language: &'static str| Some(languages.remove(language)?.row(language));
        let mut languages: Vec<_> = LANGUAGES.iter().filter_map(|row| of(row.name)).collect();
        languages.shrink_to_fit();
        let state = languages.iter().map(|row| row.state).max().unwrap_or(State::Injected);
        let for_restarts = replaceable.of(workload.clone());
        let paused = for_restarts.paused.as_ref().map(|by| PausedRow {
            by: by.to_string(),
            command: loses_agents.then(|| workload.restart_command()).flatten(),
        });
        let helps = |row: &LanguageRow| row.state.is_outdated() && row.reason != Some(NOT_SELECTED);
        // While injection is paused, a restart would remove agents.
        let is_helped = paused.is_none() && languages.iter().any(helps);
        let command = is_helped.then(|| workload.restart_command()).flatten();
        let failures = failures.rows();
        let row = WorkloadRow {
            workload,
            pods,
            state,
            languages,
            failing,
            failures,
            command,
            paused,
            restart: None,
        };
        (row, for_restarts)
    }
}

impl Found {
    /// Whether a restart brings it up to date. Pods that the webhook is not called for stay as they are.
    fn is_replaceable(&self) -> bool {
        self.state.is_outdated() && self.cause.code != NOT_SELECTED
    }
}
