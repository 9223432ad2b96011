//! A case with the pod after injection, as the rules read it.

use serde_json::Value;

use super::case::Case;
use otel_webhook_api::ANNOTATION_PREFIX;
use otel_webhook_inject::{
    Finding,
    language::{self, LANGUAGES, Language, Mark, Shape},
};

/// A case with the pod after injection.
pub struct Seen<'s> {
    pub case: &'s Case<'s>,
    pub after: &'s Value,
}

impl<'s> Seen<'s> {
    pub fn findings(&self) -> &'s [Finding] {
        &self.case.outcome.findings
    }

    pub fn has(&self, code: &str) -> bool {
        self.findings().iter().any(|finding| finding.reason.code() == code)
    }

    /// Returns what was injected: language and container.
    pub fn injected(&self) -> impl Iterator<Item = (&'s Finding, &'static Language)> {
        let injected = self.findings().iter().filter(|finding| finding.reason.is_injected());
        injected.filter_map(|finding| Some((finding, language::named(finding.language)?)))
    }

    /// Returns the injected containers as they were before, with the language.
    pub fn targets(&self) -> impl Iterator<Item = (&'s Value, &'static Language)> {
        self.injected().filter_map(|(finding, language)| {
            let name = finding.container.as_deref()?;
            Some((containers(self.case.pod).find(|container| container["name"] == name)?, language))
        })
    }

    /// Returns the Instrumentations that were used, with the language.
    pub fn used(&self) -> impl Iterator<Item = (&'s Value, &'static Language)> {
        self.injected().filter_map(|(finding, language)| {
            let name = &finding.instrumentation.as_ref()?.name;
            let key = (name.namespace.to_string(), name.name.to_string());
            Some((self.case.instrumentations.get(&key)?, language))
        })
    }

    /// Returns the values of a label on the pod and on its namespace.
    pub fn label(&self, key: &str) -> [Option<&'s str>; 2] {
        let own = self.case.pod["metadata"]["labels"][format!("{ANNOTATION_PREFIX}{key}")].as_str();
        let known = self.case.around.catalogue.namespace(self.case.around.namespace);
        let of_namespace = known.and_then(|known| {
            let found = known.opt_in_labels.iter().find(|(name, _)| **name == *key);
            found.map(|(_, value)| &**value)
        });
        [own.filter(|value| !value.is_empty()), of_namespace]
    }

    /// Returns the values of an annotation on the pod and on its namespace.
    pub fn annotation(&self, key: &str) -> [Option<&'s str>; 2] {
        let own = self.case.pod["metadata"]["annotations"][format!("{ANNOTATION_PREFIX}{key}")].as_str();
        let known = self.case.around.catalogue.namespace(self.case.around.namespace);
        let of_namespace = known.and_then(|known| {
            let found = known.annotations.iter().find(|(name, _)| **name == *key);
            found.map(|(_, value)| &**value)
        });
        [own, of_namespace]
    }
}

/// The environment variable of resource attributes.
pub const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

pub fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns every container of a pod, init containers first.
pub fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    items(&pod["spec"]["initContainers"]).chain(items(&pod["spec"]["containers"]))
}

/// Returns the entries of a variable in a list, in order.
pub fn entries<'v>(list: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    items(list).filter(move |variable| variable["name"] == name)
}

/// Returns the keys and values of a container's own resource attributes.
pub fn own_attributes(container: &Value) -> Vec<(&str, &str)> {
    let entry = entries(&container["env"], ATTRIBUTES).last();
    let text = entry.and_then(|entry| entry["value"].as_str()).unwrap_or_default();
    text.split(',').filter_map(|pair| pair.trim().split_once('=')).collect()
}

/// Returns whether this is the name of an extension's init container. A pod can have several.
pub fn is_extension(name: &str) -> bool {
    let mut marks = LANGUAGES.iter().flat_map(|row| row.marks);
    marks.any(|mark| matches!(mark, Mark::InitWithNumber(prefix) if name.starts_with(prefix)))
}

/// Returns whether this is the name of an agent's sidecar.
pub fn is_sidecar(name: &str) -> bool {
    let mut rows = LANGUAGES.iter().filter(|row| row.shape == Shape::Sidecar);
    rows.any(|row| row.marks.iter().any(|mark| matches!(mark, Mark::Sidecar(own) if *own == name)))
}
