//! Surveys for tests.

use super::*;
use crate::check::registration::tests::labels;
use otel_webhook_api::otlp;
use otel_webhook_fleet::{
    injected::{Agent, By},
    report::FailureRow,
};
use otel_webhook_inject::{Finding, Note, mistakes::Mistake, reason::Reason};
use otel_webhook_server::registration::Labels;
use otel_webhook_store::unread::{Missing, Unsure};

/// A workload for tests.
pub struct SurveyedBuilder(Vec<Surveyed>);

/// Returns a workload that does not opt in and has no pods.
pub fn seen(kind: &str, namespace: &str, name: &str) -> SurveyedBuilder {
    SurveyedBuilder(vec![Surveyed {
        subject: Subject::new(kind, namespace, name),
        labels: Labels::new(),
        own: Vec::new(),
        collector: Some(false),
        next: Next::Decided(Vec::new()),
        unsure: Vec::new(),
        agents: Vec::new(),
        referenced: Vec::new(),
        replaced: Replaced::default(),
        pods: Pods::default(),
        failures: Vec::new(),
        not_advised: None,
        mistakes: Vec::new(),
        mounting: None,
    }])
}

impl SurveyedBuilder {
    fn change(mut self, change: impl FnOnce(&mut Surveyed)) -> Self {
        change(self.0.last_mut().expect("one"));
        self
    }

    /// Adds a language for the container `app`, with its reason.
    pub fn asks(self, language: &'static str, reason: Reason) -> Self {
        let container = reason.is_injected().then(|| "app".to_owned());
        let finding =
            Finding { language, agent: None, container, instrumentation: None, reason, notes: Vec::new() };
        self.change(|one| match &mut one.next {
            Next::Decided(findings) => findings.push(finding),
            next => *next = Next::Decided(vec![finding]),
        })
    }

    /// Adds the warning about an endpoint without a scheme to the last finding.
    pub fn warned(self) -> Self {
        let problem =
            otlp::Problem::NoScheme { scheme: None, variable: otlp::ENDPOINT, host: "c:4317".to_owned() };
        self.change(|one| match &mut one.next {
            Next::Decided(findings) => findings.last_mut().expect("one").notes.push(Note::Exporter(problem)),
            next => panic!("{next:?}"),
        })
    }

    /// Adds a note to the last finding.
    pub fn notes(self, note: Note) -> Self {
        self.change(|one| {
            let Next::Decided(findings) = &mut one.next else { panic!("no findings") };
            findings.last_mut().expect("a finding").notes.push(note);
        })
    }

    /// Makes its template opt in to a language.
    pub fn names(self, language: &'static str) -> Self {
        self.change(|one| one.own.push(language))
    }

    /// Sets the number of pods.
    pub fn pods(self, count: usize) -> Self {
        self.change(|one| one.pods.count = count)
    }

    /// Adds what fails in its pods.
    pub fn fails(self, failure: FailureRow) -> Self {
        self.change(|one| one.failures.push(failure))
    }

    /// Sets the number of pods into which the operator injected a language.
    pub fn has(self, language: &'static str, count: usize) -> Self {
        self.change(|one| {
            let agent = Agent { language, by: By::Operator, instrumentation: None, hash: None, image: None };
            one.pods.agents.insert(agent, count);
        })
    }

    /// Adds an agent of its next pod, and of some of its pods.
    pub fn agent(self, next: Agent, now: &[(Agent, usize)]) -> Self {
        self.change(|one| {
            one.agents.push(next);
            one.pods.agents.extend(now.iter().cloned());
        })
    }

    /// Makes pods that were skipped when they were created.
    pub fn skipped(self, language: &'static str, code: &str, count: usize) -> Self {
        self.change(|one| {
            one.pods.skipped.insert((language.to_owned(), code.to_owned()), count);
        })
    }

    /// Sets how its pods are replaced.
    pub fn replaced(self, replaced: Replaced) -> Self {
        self.change(|one| one.replaced = replaced)
    }

    /// Sets the labels of its pods.
    pub fn labelled(self, key: &str, value: &str) -> Self {
        self.change(|one| {
            one.labels.insert(key.to_owned(), value.to_owned());
        })
    }

    /// Sets its annotations and labels that have no effect.
    pub fn mistaken(self, mistakes: Vec<Mistake>) -> Self {
        self.change(|one| one.mistakes = mistakes)
    }

    /// Makes its pod unreadable.
    pub fn unreadable(self, problem: &str) -> Self {
        self.change(|one| one.next = Next::Unreadable(problem.to_owned()))
    }

    /// Makes its template unknown.
    pub fn unknown(self) -> Self {
        self.change(|one| one.next = Next::Unknown)
    }

    /// Makes it opt in to a collector.
    pub fn collector(self) -> Self {
        self.change(|one| one.collector = Some(true))
    }

    /// Makes the result of a language unknown, since the Instrumentations of the namespace `ta` are not readable.
    pub fn unsure(self, language: &'static str) -> Self {
        let missing = Missing::Instrumentations("ta".to_owned());
        self.change(|one| one.unsure.push(Unsure { language, missing }))
    }

    /// Combines it with others.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns a survey of workloads, in namespaces without labels.
    pub fn survey(self) -> Survey {
        let namespaces = self.0.iter().map(|one| one.subject.namespace.clone());
        let namespaces = namespaces.map(|name| (name.clone(), labels(&name))).collect();
        Survey { namespaces, workloads: self.0, ..Survey::default() }
    }
}
