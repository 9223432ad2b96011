//! Surveys for the tests of those who read them.

use super::*;
use crate::cli::check::{
    differences::Difference,
    injected::By,
    registration::{Labels, tests::labels},
};
use otel_webhook_api::otlp;
use otel_webhook_inject::{Finding, Note, reason::Reason};

/// Workloads as they were seen.
pub struct Seen(Vec<Surveyed>);

/// One workload that asks for nothing and has no pods.
pub fn seen(kind: &str, namespace: &str, name: &str) -> Seen {
    Seen(vec![Surveyed {
        subject: Subject::new(kind, namespace, name),
        labels: Labels::new(),
        own: Vec::new(),
        collector: Some(false),
        next: Next::Decided(Vec::new()),
        pods: Pods::default(),
        differences: Vec::new(),
    }])
}

impl Seen {
    fn change(mut self, change: impl FnOnce(&mut Surveyed)) -> Self {
        change(self.0.last_mut().expect("one"));
        self
    }

    /// It asks for a language in its container `app`, and this comes of it.
    pub fn asks(self, language: &'static str, reason: Reason) -> Self {
        let container = reason.is_injected().then(|| "app".to_owned());
        let finding = Finding { language, container, instrumentation: None, reason, notes: Vec::new() };
        self.change(|one| match &mut one.next {
            Next::Decided(findings) => findings.push(finding),
            next => *next = Next::Decided(vec![finding]),
        })
    }

    /// What was asked for last has an endpoint without a scheme.
    pub fn warned(self) -> Self {
        let problem = otlp::Problem::NoScheme { variable: otlp::ENDPOINT, host: "c:4317".to_owned() };
        self.change(|one| match &mut one.next {
            Next::Decided(findings) => findings.last_mut().expect("one").notes.push(Note::Exporter(problem)),
            next => panic!("{next:?}"),
        })
    }

    /// There is something to know of what came of it last.
    pub fn notes(self, note: Note) -> Self {
        self.change(|one| {
            let Next::Decided(findings) = &mut one.next else { panic!("nothing came of it") };
            findings.last_mut().expect("a finding").notes.push(note);
        })
    }

    /// Its own template names a language.
    pub fn names(self, language: &'static str) -> Self {
        self.change(|one| one.own.push(language))
    }

    /// It has so many pods.
    pub fn pods(self, count: usize) -> Self {
        self.change(|one| one.pods.count = count)
    }

    /// So many of them have a language, by the operator.
    pub fn has(self, language: &'static str, count: usize) -> Self {
        self.change(|one| {
            one.pods.have.insert((language, By::Operator), count);
        })
    }

    /// Its pod cannot be read.
    pub fn unreadable(self, problem: &str) -> Self {
        self.change(|one| one.next = Next::Unreadable(problem.to_owned()))
    }

    /// Its template is not known.
    pub fn unknown(self) -> Self {
        self.change(|one| one.next = Next::Unknown)
    }

    /// It asks for a collector.
    pub fn collector(self) -> Self {
        self.change(|one| one.collector = Some(true))
    }

    /// Its next pod differs by these numbers.
    pub fn differs(self, numbers: &[u8]) -> Self {
        self.change(|one| one.differences = numbers.iter().copied().map(Difference).collect())
    }

    /// With others.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// A survey of them, in namespaces without labels of their own.
    pub fn survey(self) -> Survey {
        let namespaces = self.0.iter().map(|one| one.subject.namespace.clone());
        let namespaces = namespaces.map(|name| (name.clone(), labels(&name))).collect();
        Survey { namespaces, workloads: self.0, ..Survey::default() }
    }
}
