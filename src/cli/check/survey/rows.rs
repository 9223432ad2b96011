//! What was seen: a row a workload.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::cli::check::{
    cluster::NotTold,
    differences::Difference,
    injected::{self, By},
    registration::Labels,
    result::Subject,
};
use otel_webhook_inject::Finding;

/// The annotation by which a pod or a namespace asks the operator for a collector.
pub const COLLECTOR: &str = "sidecar.opentelemetry.io/inject";

/// What was seen.
#[derive(Debug, Default)]
pub struct Survey {
    /// Labels of each namespace.
    pub namespaces: BTreeMap<String, Labels>,
    /// What comes of what namespaces ask for all their pods.
    pub asking: Vec<(String, Vec<Finding>)>,
    /// Instrumentations that cannot be used, with their problems.
    pub unusable: Vec<(Subject, String)>,
    /// Namespaces that ask the operator for a collector in every pod.
    pub collectors: BTreeSet<String>,
    /// The workloads, by namespace, kind and name.
    pub workloads: Vec<Surveyed>,
    /// What could not be read.
    pub not_told: Vec<NotTold>,
}

/// One workload.
#[derive(Debug)]
pub struct Surveyed {
    /// The workload.
    pub subject: Subject,
    /// Labels of its pods.
    pub labels: Labels,
    /// The languages that its own template names, whatever its namespace says.
    pub own: Vec<&'static str>,
    /// Whether the operator is asked for a collector in its pods; none until the namespace is asked, too.
    pub collector: Option<bool>,
    /// What a new pod would get.
    pub next: Next,
    /// Its pods.
    pub pods: Pods,
    /// How a new pod would differ from the operator's.
    pub differences: Vec<Difference>,
}

/// What a new pod would get.
#[derive(Debug)]
pub enum Next {
    /// What the core finds.
    Decided(Vec<Finding>),
    /// The pod cannot be read.
    Unreadable(String),
    /// Its template is not known: another controller makes the pods.
    Unknown,
}

/// The running pods of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pods {
    /// How many there are.
    pub count: usize,
    /// How many of them have a language, by whom.
    pub have: BTreeMap<(&'static str, By), usize>,
}

impl Pods {
    /// How many have a language, whoever gave it to them.
    pub fn with(&self, language: &str) -> usize {
        self.have.iter().filter(|((own, _), _)| *own == language).map(|(_, count)| count).sum()
    }

    /// Counts a pod.
    pub fn add(&mut self, pod: &Value) {
        self.count += 1;
        for has in injected::languages(pod) {
            *self.have.entry(has).or_default() += 1;
        }
    }
}

impl Survey {
    /// Whether there is not even a namespace, as far as that was told.
    pub fn is_of_nowhere(&self) -> bool {
        self.namespaces.is_empty() && self.not_told.is_empty()
    }
}
