//! What a new pod in place of a running one would get: decided by the crate `inject`, as in a review. What it depends on
//! and the user who asks may not read is a doubt; a state that depends on it is unconfirmed.

use std::collections::BTreeMap;

use otel_webhook_inject::{
    Finding, Input, Settings, Used, build,
    catalogue::Catalogue,
    decide,
    language::LANGUAGES,
    pause::Pause,
    pod::Pod,
    reason::{DependsOn, ObjectName, Reason},
    workload::{Lookup, OwnerQuery, Owners},
};

use crate::{
    injected::{self, Decided},
    pod::Shape,
};

/// What decisions depend on in addition to the pod.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// Namespaces, Instrumentations and limits.
    pub catalogue: &'a Catalogue,
    /// The settings of the installation.
    pub settings: &'a Settings,
}

/// What a new pod would get of a language that is opted in to.
#[derive(Clone, Debug)]
pub enum NextAgent {
    /// An agent.
    Agent(Used),
    /// None while injection is paused, and else this agent.
    Paused {
        /// What a new pod would get without the pause.
        used: Used,
        /// What pauses.
        by: Pause,
        /// The reason as a sentence.
        message: String,
    },
    /// None.
    Skipped {
        /// The code of the reason.
        code: &'static str,
        /// The reason as a sentence.
        message: String,
        /// The Instrumentation, if one was chosen.
        instrumentation: Option<ObjectName>,
    },
    /// Not known, for this reason.
    Unknown(String),
}

/// What a new pod would be.
#[derive(Debug, Default)]
pub struct NextPod {
    /// The languages that are opted in to.
    pub languages: BTreeMap<&'static str, NextAgent>,
    /// Why it is unknown whether the other languages are opted in to; none if they are not.
    pub others: Option<String>,
    /// The languages that the pod itself opts in to, and not its namespace.
    pub own: Vec<&'static str>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// What was decided on a new pod.
#[derive(Debug, Default)]
pub struct Decision {
    own: Vec<&'static str>,
    labels: BTreeMap<String, String>,
    findings: Separated,
}

impl Decision {
    /// Decides on a new pod where not everything is readable.
    ///
    /// # Errors
    /// If the pod cannot be read.
    pub fn of(
        shape: &Shape,
        namespace: &str,
        around: &Around<'_>,
        doubts: &dyn Doubts,
    ) -> Result<Self, serde_json::Error> {
        let text = shape.text();
        let pod = Pod::parse(&text)?;
        let input = Input { pod: &pod, namespace, catalogue: around.catalogue, settings: around.settings };
        let findings = doubts.separate(namespace, build(decide(input), &NoOwners).findings);
        Ok(Self { own: own(&pod), labels: labels(&pod), findings })
    }

    /// Nothing is known of the pod, for this reason.
    pub fn unknown(why: &str) -> Self {
        let findings = Separated { others: Some(why.to_owned()), ..Separated::default() };
        Self { findings, ..Self::default() }
    }

    /// Returns whether it depends on Instrumentations of other namespaces than the pod's.
    pub fn reads_elsewhere(&self, namespace: &str) -> bool {
        let is_elsewhere = |finding: &Finding| {
            let used = finding.instrumentation.as_ref().map(|used| &used.name);
            let on = finding.reason.depends_on();
            let is_unknown = matches!(on, DependsOn::Named | DependsOn::Chosen | DependsOn::Used);
            let name = used.or(finding.reason.instrumentation());
            name.map_or(is_unknown, |name| *name.namespace != *namespace)
        };
        !self.findings.unknown.is_empty() || self.findings.certain.iter().any(is_elsewhere)
    }

    /// Returns the new pod in place of one on which this was decided when it was created.
    ///
    /// What was decided with the same configuration stands. The shape of an injected pod lacks what the decision depended
    /// on, such as its variables, and quotas count the running pod itself.
    pub fn next(&self, decided: &[Decided]) -> NextPod {
        let Separated { certain, unknown, others } = &self.findings;
        let (own, labels) = (self.own.clone(), self.labels.clone());
        let mut next = NextPod { own, labels, others: others.clone(), ..NextPod::default() };
        let mut findings = Vec::with_capacity(certain.len());
        for finding in certain {
            let was = Decided::find(decided, finding);
            match (was, &finding.reason) {
                (Some(Some(code)), Reason::Injected) => next.add_kept(finding, code),
                (Some(None), reason) if !matches!(reason, Reason::Paused { .. }) => {
                    findings.push(Finding { reason: Reason::Injected, ..finding.clone() });
                }
                _ => findings.push(finding.clone()),
            }
        }
        for row in LANGUAGES {
            if let Some(used) = injected::of_findings(&findings, row.name) {
                let paused = findings.iter().filter(|finding| finding.language == row.name).find_map(paused);
                let agent = match paused {
                    Some((by, message)) => NextAgent::Paused { used, by, message },
                    None => NextAgent::Agent(used),
                };
                next.languages.insert(row.name, agent);
            }
        }
        for finding in findings {
            next.add_skipped(finding);
        }
        let unknown = unknown.iter().map(|(language, why)| (*language, NextAgent::Unknown(why.clone())));
        next.languages.extend(unknown);
        next
    }
}

impl NextPod {
    /// Decides on a new pod.
    ///
    /// # Errors
    /// If the pod cannot be read.
    pub fn of(shape: &Shape, namespace: &str, around: &Around<'_>) -> Result<Self, serde_json::Error> {
        Ok(Decision::of(shape, namespace, around, &NoDoubts)?.next(&[]))
    }

    /// Returns why it is unknown what a new pod would get of a language; none if it is known.
    pub fn doubt(&self, language: &str) -> Option<&str> {
        match self.languages.get(language) {
            Some(NextAgent::Unknown(why)) => Some(why),
            Some(_) => None,
            None => self.others.as_deref(),
        }
    }

    /// What pauses injection of one of its languages, if anything does.
    pub fn paused(&self) -> Option<&Pause> {
        self.languages.values().find_map(|agent| match agent {
            NextAgent::Paused { by, .. } => Some(by),
            _ => None,
        })
    }

    /// A language is injected if it is into one container at least; else the first reason stands for all.
    fn add_skipped(&mut self, finding: Finding) {
        if matches!(finding.reason, Reason::SwitchedOff { .. }) {
            return;
        }
        let skipped = NextAgent::Skipped {
            code: finding.reason.code(),
            message: finding.reason.to_string(),
            instrumentation: finding.instrumentation.map(|used| used.name),
        };
        self.languages.entry(finding.language).or_insert(skipped);
    }

    /// Adds what was skipped when the running pod was created, and would be again.
    fn add_kept(&mut self, finding: &Finding, code: &'static str) {
        let skipped = NextAgent::Skipped {
            code,
            message: "it was skipped when the pod was created; the annotation otel-webhook/message of the pod says why"
                .to_owned(),
            instrumentation: finding.instrumentation.as_ref().map(|used| used.name.clone()),
        };
        self.languages.entry(finding.language).or_insert(skipped);
    }
}

/// What pauses, and the reason as a sentence, if a finding is about a pause.
fn paused(finding: &Finding) -> Option<(Pause, String)> {
    match &finding.reason {
        Reason::Paused { by, .. } => Some((by.clone(), finding.reason.to_string())),
        _ => None,
    }
}

/// Returns the languages that a pod opts in to itself.
fn own(pod: &Pod<'_>) -> Vec<&'static str> {
    let has = |key: &str| {
        let key = format!("{}{key}", otel_webhook_api::ANNOTATION_PREFIX);
        let is_set = |value: Option<&str>| value.is_some_and(|value| !value.is_empty());
        is_set(pod.metadata.annotations.get(&key)) || is_set(pod.metadata.labels.get(&key))
    };
    LANGUAGES.into_iter().filter(|language| has(language.inject)).map(|language| language.name).collect()
}

fn labels(pod: &Pod<'_>) -> BTreeMap<String, String> {
    pod.metadata.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// No result depends on the names of owners.
struct NoOwners;

impl Owners for NoOwners {
    fn look_up(&self, _: OwnerQuery<'_>) -> Lookup {
        Lookup::Absent
    }
}

/// What is not known about a cluster.
pub trait Doubts {
    /// Separates the findings about a new pod that are certain from the languages for which the result is unknown.
    fn separate(&self, namespace: &str, findings: Vec<Finding>) -> Separated;

    /// Returns why the present configurations are unknown, such as the default images of the webhook's flags; none
    /// if they are known.
    fn configurations(&self) -> Option<&str>;
}

/// Findings, separated by what is known.
#[derive(Debug, Default)]
pub struct Separated {
    /// The findings that are certain.
    pub certain: Vec<Finding>,
    /// The languages for which the result is unknown, with the reason.
    pub unknown: Vec<(&'static str, String)>,
    /// Why it is unknown whether the other languages are opted in to; none if they are not.
    pub others: Option<String>,
}

/// Everything is known.
#[derive(Clone, Copy, Debug)]
pub struct NoDoubts;

impl Doubts for NoDoubts {
    fn separate(&self, _: &str, findings: Vec<Finding>) -> Separated {
        Separated { certain: findings, ..Separated::default() }
    }

    fn configurations(&self) -> Option<&str> {
        None
    }
}
