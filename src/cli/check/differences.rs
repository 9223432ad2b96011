//! Which of the numbered differences from the operator change a workload's next pod.
//!
//! As far as the pod, its surroundings and what the core finds can tell. Some
//! leave no trace in a pod: D10 is about time, D11 about fields that no client
//! knows, D22 about Instrumentations when they are stored.

mod by_finding;
mod by_instrumentation;
mod by_pod;

use std::{borrow::Cow, collections::HashMap};

use serde_json::Value;

use otel_webhook_api::ANNOTATION_PREFIX;
use otel_webhook_inject::{
    Finding, Outcome,
    language::{self, Language},
    pod::OwnerReference,
    template::Around,
};

/// A numbered difference: its number in docs/injection.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference(pub u8);

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "D{}", self.0)
    }
}

/// A pod, what came of it, and what that came of.
pub struct Case<'c> {
    /// The pod before.
    pub pod: &'c Value,
    /// What the core finds.
    pub outcome: &'c Outcome,
    /// The same with the init containers' resources as the operator sets them.
    pub exact: &'c Outcome,
    /// What is known around it.
    pub around: &'c Around<'c>,
    /// The owner that a pod of a template will have.
    pub owner: Option<&'c OwnerReference<'static>>,
    /// Instrumentations as they are stored, by namespace and name.
    pub instrumentations: &'c HashMap<(String, String), Value>,
}

/// A rule: whether a difference shows in this case.
type Rule = fn(&Seen<'_>) -> bool;

/// The rules, by number.
static RULES: [(u8, Rule); 28] = [
    (1, by_pod::original_kept),
    (2, by_finding::every_target_skipped),
    (3, by_pod::extension_has_pull_policy),
    (4, by_pod::has_node_name),
    (5, by_finding::names_unknown_or_padded),
    (6, by_pod::original_attributes_kept),
    (7, by_pod::attribute_with_equals_sign),
    (8, |seen| seen.has("NamespaceSteppedBack")),
    (9, by_instrumentation::chosen_among_several),
    (12, by_pod::attribute_would_be_repeated),
    (13, by_pod::variable_would_be_repeated),
    (14, by_instrumentation::sets_what_is_extended),
    (15, by_finding::first_target_skipped),
    (16, by_pod::odd_attributes),
    (17, by_finding::would_be_invalid),
    (18, by_finding::injected_in_part),
    (19, by_pod::owner_in_attributes),
    (20, by_finding::certificates_not_checked),
    (21, by_finding::other_language_fails),
    (23, |seen| seen.case.outcome.patch != seen.case.exact.patch),
    (24, by_pod::default_container_is_not_first),
    (25, |seen| seen.has("WindowsPod")),
    (26, by_pod::extended_twice),
    (27, by_pod::replica_set_of_another),
    (28, by_instrumentation::image_follows_default),
    (29, by_pod::node_name_added),
    (30, by_finding::helpers_skipped),
    (32, by_finding::bounded_by_namespace),
];

/// The differences that show in a case, by number.
pub fn of(case: &Case<'_>) -> Vec<Difference> {
    if !case.outcome.is_asked() {
        return Vec::new();
    }
    let mut after = Cow::Borrowed(case.pod);
    let patch = &case.outcome.patch;
    if !patch.is_empty() && json_patch::patch(after.to_mut(), patch).is_err() {
        return Vec::new();
    }
    let seen = Seen { case, after: &after };
    RULES.iter().filter(|(_, rule)| rule(&seen)).map(|(number, _)| Difference(*number)).collect()
}

/// A case with the pod after.
struct Seen<'s> {
    case: &'s Case<'s>,
    after: &'s Value,
}

impl<'s> Seen<'s> {
    fn findings(&self) -> &'s [Finding] {
        &self.case.outcome.findings
    }

    fn has(&self, code: &str) -> bool {
        self.findings().iter().any(|finding| finding.reason.code() == code)
    }

    /// What went in: language and container.
    fn injected(&self) -> impl Iterator<Item = (&'s Finding, &'static Language)> {
        let injected = self.findings().iter().filter(|finding| finding.reason.is_injected());
        injected.filter_map(|finding| Some((finding, language::named(finding.language)?)))
    }

    /// The containers that something went into, as they were before, with the language.
    fn targets(&self) -> impl Iterator<Item = (&'s Value, &'static Language)> {
        self.injected().filter_map(|(finding, language)| {
            let name = finding.container.as_deref()?;
            Some((containers(self.case.pod).find(|container| container["name"] == name)?, language))
        })
    }

    /// The Instrumentations that were used, with the language.
    fn used(&self) -> impl Iterator<Item = (&'s Value, &'static Language)> {
        self.injected().filter_map(|(finding, language)| {
            let name = &finding.instrumentation.as_ref()?.name;
            let key = (name.namespace.to_string(), name.name.to_string());
            Some((self.case.instrumentations.get(&key)?, language))
        })
    }

    /// An annotation under the prefix: the pod's own, and its namespace's.
    fn annotation(&self, key: &str) -> [Option<&'s str>; 2] {
        let own = self.case.pod["metadata"]["annotations"][format!("{ANNOTATION_PREFIX}{key}")].as_str();
        let known = self.case.around.catalogue.namespace(self.case.around.namespace);
        let of_namespace = known.and_then(|known| {
            let found = known.annotations.iter().find(|(name, _)| **name == *key);
            found.map(|(_, value)| &**value)
        });
        [own, of_namespace]
    }
}

/// The variable of resource attributes.
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Every container of a pod, init containers first.
fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    items(&pod["spec"]["initContainers"]).chain(items(&pod["spec"]["containers"]))
}

/// The entries of a variable in a list, in order.
fn entries<'v>(list: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    items(list).filter(move |variable| variable["name"] == name)
}

/// The keys and values of a container's own resource attributes.
fn own_attributes(container: &Value) -> Vec<(&str, &str)> {
    let entry = entries(&container["env"], ATTRIBUTES).last();
    let text = entry.and_then(|entry| entry["value"].as_str()).unwrap_or_default();
    text.split(',').filter_map(|pair| pair.trim().split_once('=')).collect()
}

#[cfg(test)]
mod tests;
