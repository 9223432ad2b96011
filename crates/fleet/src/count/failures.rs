//! Which pods of a workload fail because of what injection added, and why.

use std::{cmp::Reverse, collections::BTreeMap};

use jiff::Timestamp;
use otel_webhook_inject::language::{Language, named};

use crate::{
    census::{Group, Member},
    failing::{Evidence, Failure, Kind, Part, Verdict},
    report::FailureRow,
    state::State,
    workload::Workload,
};

/// A language in a container of the application, the configuration with which it was injected, and the image.
type Target<'g> = (&'static str, &'g str, Option<&'g str>, Option<String>);

/// The evidence about the containers of the application that cannot start or stay in pods of a workload.
pub(super) struct Suspects<'g>(BTreeMap<Target<'g>, Evidence>);

/// A failure of a pod, in one language.
pub(super) struct Found<'g> {
    pub(super) language: &'static str,
    pub(super) failure: &'g Failure,
    /// What speaks for the agent, or against it; `None` for what injection added.
    pub(super) evidence: Option<Evidence>,
}

impl<'g> Suspects<'g> {
    /// Compares the pods of a workload.
    pub(super) fn of(groups: &[&'g Group]) -> Self {
        let mut suspects = BTreeMap::new();
        for (group, member) in members(groups) {
            for failure in application(group, member) {
                for language in &failure.languages {
                    suspects.entry(target(group, member, language, &failure.container)).or_default();
                }
            }
        }
        for ((language, container, hash, image), evidence) in &mut suspects {
            // Another image is another application.
            for group in groups.iter().filter(|group| image_of(group, container) == *image) {
                group
                    .members
                    .iter()
                    .for_each(|member| add(evidence, (language, container, *hash), group, member));
            }
        }
        Self(suspects)
    }

    /// Returns whether there are any.
    pub(super) fn are_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns what fails in a pod.
    pub(super) fn failures(&self, group: &'g Group, member: &Member) -> Vec<Found<'g>> {
        let failures = group.status_of(member).into_iter().flat_map(|status| &status.failures);
        let of = |failure: &'g Failure| {
            failure.languages.iter().map(move |language| {
                let target = || target(group, member, language, &failure.container);
                let is_own = failure.part == Part::Application;
                let evidence = is_own.then(|| self.0.get(&target()).copied().unwrap_or_default());
                Found { language, failure, evidence }
            })
        };
        failures.flat_map(of).collect()
    }
}

fn members<'g>(groups: &[&'g Group]) -> impl Iterator<Item = (&'g Group, &'g Member)> {
    groups.iter().flat_map(|group| group.members.iter().map(|member| (*group, member)))
}

/// Returns the containers of the application that cannot start or stay.
fn application<'g>(group: &'g Group, member: &Member) -> impl Iterator<Item = &'g Failure> {
    let failures = group.status_of(member).into_iter().flat_map(|status| &status.failures);
    failures.filter(|failure| failure.part == Part::Application)
}

fn target<'g>(group: &'g Group, member: &Member, language: &'static str, container: &'g str) -> Target<'g> {
    let agents = group.agents_of(member).unwrap_or_default();
    let hash = agents.iter().find(|agent| agent.language == language).and_then(|agent| agent.hash.as_deref());
    (language, container, hash, image_of(group, container))
}

/// Adds a pod to the evidence about a container with a language and the hash of its configuration.
fn add(
    evidence: &mut Evidence,
    (language, container, hash): (&str, &str, Option<&str>),
    group: &Group,
    member: &Member,
) {
    let Some((status, agents)) = group.status_of(member).zip(group.agents_of(member)) else { return };
    let agent = agents.iter().find(|agent| agent.language == language);
    let pods = match agent {
        None => &mut evidence.without,
        Some(agent) if agent.hash.as_deref() == hash => &mut evidence.same,
        Some(_) => &mut evidence.other,
    };
    if application(group, member).any(|failure| *failure.container == *container) {
        pods.failing += 1;
    } else if status.is_ready {
        pods.ready += 1;
    }
}

/// Returns the image of a container; `None` if only the metadata of the pods is known.
fn image_of(group: &Group, container: &str) -> Option<String> {
    let pod = group.shape.pod().ok()?;
    let all = pod.spec.init_containers.iter().chain(pod.spec.containers.iter());
    { all }.find(|one| *one.name == *container).map(|one| one.image.to_string())
}

impl Found<'_> {
    /// Whether the pod counts as failing because of it.
    pub(super) fn is_counted(&self) -> bool {
        self.evidence.is_none_or(|evidence| evidence.verdict() == Verdict::Agent)
    }

    /// Whether the image of the agent is not on the node.
    pub(super) fn is_of_image(&self) -> bool {
        matches!(self.failure.kind, Kind::ImagePull | Kind::ImageName | Kind::ImageNeverPull)
    }

    /// Returns the code of the reason.
    pub(super) fn code(&self) -> &'static str {
        self.evidence.map_or(self.failure.kind.code(), |evidence| evidence.verdict().code())
    }

    /// Returns the row, without pods.
    fn row(&self, workload: &Workload, state: State, instrumentation: Option<&str>) -> FailureRow {
        let Self { language, failure, evidence } = self;
        let (cause, remedy) = failure.kind.texts(failure.part);
        let spoken = evidence.map(|evidence| format!(": {}", evidence.sentence())).unwrap_or_default();
        // A container that was never created has no log.
        let own = evidence.filter(|_| failure.kind.is_end()).and_then(|evidence| evidence.verdict().remedy());
        let remedy = match own {
            Some(own) => own.to_owned(),
            // The Instrumentation was changed already.
            None if state == State::Stale => {
                let command = workload.restart_command();
                let to_do = command.unwrap_or_else(|| workload.by_hand().to_owned());
                format!("a new pod would get another configuration: {to_do}")
            }
            None => {
                let name = instrumentation.map(|name| format!(" (Instrumentation {name})"));
                format!("{remedy}{}", name.unwrap_or_default())
            }
        };
        FailureRow {
            language,
            container: failure.container.to_string(),
            code: self.code(),
            is_counted: self.is_counted(),
            message: format!("{cause}{spoken}"),
            remedy,
            kubelet: failure.message.to_string(),
            pods: 0,
            pod: String::new(),
            restarts: failure.restarts,
        }
    }
}

/// Whether it is counted, which come first; then the position of the language, the container and the code.
type Key = (Reverse<bool>, usize, String, &'static str);

/// The failures of a workload, each with the time at which the youngest of its pods was created.
#[derive(Default)]
pub(super) struct Failures(BTreeMap<Key, (FailureRow, Timestamp)>);

impl Failures {
    /// Adds what fails in a pod. `state` and `instrumentation` are those of the language.
    pub(super) fn add(
        &mut self,
        workload: &Workload,
        member: &Member,
        found: &Found<'_>,
        state: State,
        instrumentation: Option<&str>,
    ) {
        let Found { language, failure, .. } = found;
        let position = named(language).map_or(0, Language::index);
        let key = (Reverse(found.is_counted()), position, failure.container.to_string(), found.code());
        let first = || (found.row(workload, state, instrumentation), member.created);
        let (row, newest) = self.0.entry(key).or_insert_with(first);
        row.pods += 1;
        if (*newest, &*row.pod) <= (member.created, &*member.name) {
            (*newest, row.pod) = (member.created, member.name.to_string());
        }
    }

    /// Returns the rows.
    pub(super) fn rows(self) -> Vec<FailureRow> {
        self.0.into_values().map(|(row, _)| row).collect()
    }
}
