//! Which pods of a workload fail because of what injection added, and why.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
};

use jiff::Timestamp;
use otel_webhook_inject::language::{Language, named};

use super::PodOf;
use crate::{
    census::{Member, ShapeKey},
    failing::{Evidence, Failure, Kind, Part, Verdict},
    pod::Shape,
    report::FailureRow,
    state::State,
    workload::Workload,
};

/// A language in a container of the application, the configuration with which it was injected, and the image.
type Target<'g> = (&'static str, &'g str, Option<&'g str>, Option<String>);

/// The evidence about the containers of the application that cannot start or stay in pods of a workload.
pub(super) struct Suspects<'g> {
    shapes: &'g HashMap<ShapeKey, &'g Shape>,
    evidence: BTreeMap<Target<'g>, Evidence>,
}

/// A failure of a pod, in one language.
pub(super) struct Found<'g> {
    pub(super) language: &'static str,
    pub(super) failure: &'g Failure,
    /// What speaks for the agent, or against it; `None` for what injection added.
    pub(super) evidence: Option<Evidence>,
}

impl<'g> Suspects<'g> {
    /// Compares the pods of a workload. `shapes` are all of theirs.
    pub(super) fn of(members: &'g [Member], shapes: &'g HashMap<ShapeKey, &'g Shape>) -> Self {
        let mut suspects = Self { shapes, evidence: BTreeMap::new() };
        for member in members {
            for failure in application(member) {
                for language in &failure.languages {
                    let target = suspects.target(member, language, &failure.container);
                    suspects.evidence.entry(target).or_default();
                }
            }
        }
        let mut evidence = std::mem::take(&mut suspects.evidence);
        for ((language, container, hash, image), evidence) in &mut evidence {
            // Another image is another application.
            let own = shapes.iter().filter(|(_, shape)| shape.image(container) == *image);
            let own: HashSet<ShapeKey> = own.map(|(key, _)| *key).collect();
            let alike = members.iter().filter(|member| member.shape().is_some_and(|key| own.contains(&key)));
            alike.for_each(|member| add(evidence, (language, container, *hash), member));
        }
        Self { shapes, evidence }
    }

    /// Returns whether there are any.
    pub(super) fn are_any(&self) -> bool {
        !self.evidence.is_empty()
    }

    /// Returns what fails in a pod.
    pub(super) fn failures(&self, member: &'g Member) -> Vec<Found<'g>> {
        let failures = member.status().into_iter().flat_map(|status| &status.failures);
        let of = |failure: &'g Failure| {
            failure.languages.iter().map(move |language| {
                let target = || self.target(member, language, &failure.container);
                let is_own = failure.part == Part::Application;
                let evidence = is_own.then(|| self.evidence.get(&target()).copied().unwrap_or_default());
                Found { language, failure, evidence }
            })
        };
        failures.flat_map(of).collect()
    }

    fn target(&self, member: &'g Member, language: &'static str, container: &'g str) -> Target<'g> {
        let agents = member.agents().unwrap_or_default();
        let hash =
            agents.iter().find(|agent| agent.language == language).and_then(|agent| agent.hash.as_deref());
        let shape = member.shape().and_then(|key| self.shapes.get(&key));
        let image = shape.and_then(|shape| shape.image(container));
        (language, container, hash, image)
    }
}

/// Returns the containers of the application that cannot start or stay.
fn application(member: &Member) -> impl Iterator<Item = &Failure> {
    let failures = member.status().into_iter().flat_map(|status| &status.failures);
    failures.filter(|failure| failure.part == Part::Application)
}

/// Adds a pod to the evidence about a container with a language and the hash of its configuration.
fn add(evidence: &mut Evidence, (language, container, hash): (&str, &str, Option<&str>), member: &Member) {
    let Some((status, agents)) = member.status().zip(member.agents()) else { return };
    let agent = agents.iter().find(|agent| agent.language == language);
    let pods = match agent {
        None => &mut evidence.without,
        Some(agent) if agent.hash.as_deref() == hash => &mut evidence.same,
        Some(_) => &mut evidence.other,
    };
    if application(member).any(|failure| *failure.container == *container) {
        pods.failing += 1;
    } else if status.is_ready {
        pods.ready += 1;
    }
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
        PodOf { workload, name, member, .. }: PodOf<'_>,
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
        if (*newest, &*row.pod) <= (member.created, name) {
            (*newest, row.pod) = (member.created, name.to_owned());
        }
    }

    /// Returns the rows.
    pub(super) fn rows(self) -> Vec<FailureRow> {
        self.0.into_values().map(|(row, _)| row).collect()
    }
}
