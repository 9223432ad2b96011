//! The Instrumentations of a namespace, by name and by the labels that they select.

use std::{
    collections::HashMap,
    ops::Deref,
    slice,
    sync::{Arc, OnceLock},
};

use super::{opt_in::OptIns, stored::Stored};
use crate::text::Map;

/// Instrumentations, sorted by name.
#[derive(Clone, Debug, Default)]
pub struct Instrumentations {
    list: Vec<Stored>,
    /// Built at the first use, and again after each change.
    index: OnceLock<Arc<Index>>,
    opt_ins: OnceLock<Arc<OptIns>>,
}

/// The index by labels: for a pod only the candidates are checked.
#[derive(Clone, Debug, Default)]
struct Index {
    /// Those without a selector.
    for_all: Vec<usize>,
    /// Those with a selector that can match a pod without labels.
    unlabelled: Vec<usize>,
    /// The others, by one label that their selector requires.
    labelled: HashMap<Box<str>, Labelled>,
}

/// Those that require a label with a certain key.
#[derive(Clone, Debug, Default)]
struct Labelled {
    with_any_value: Vec<usize>,
    by_value: HashMap<Box<str>, Vec<usize>>,
}

impl Instrumentations {
    /// The Instrumentation with a name.
    pub fn get(&self, name: &str) -> Option<&Stored> {
        self.position(name).ok().map(|at| &self.list[at])
    }

    /// Inserts or replaces one.
    pub fn store(&mut self, stored: Stored) {
        match self.position(&stored.name().name) {
            Ok(at) => self.list[at] = stored,
            Err(at) => self.list.insert(at, stored),
        }
        self.forget_indexes();
    }

    /// Removes one.
    pub fn forget(&mut self, name: &str) {
        self.retain(|stored| *stored.name().name != *name);
    }

    /// Removes those that `keep` does not keep.
    pub fn retain(&mut self, keep: impl FnMut(&Stored) -> bool) {
        self.list.retain(keep);
        self.forget_indexes();
    }

    /// Those without a selector, by name.
    pub fn for_all(&self) -> impl Iterator<Item = &Stored> {
        self.index().for_all.iter().map(|&at| &self.list[at])
    }

    /// Those with a selector that may match a pod with these labels, by name.
    pub fn for_labels(&self, labels: &Map<'_>) -> impl Iterator<Item = &Stored> {
        let index = self.index();
        let mut found = index.unlabelled.clone();
        if !index.labelled.is_empty() {
            for (key, _) in labels.iter() {
                // The last of a repeated label is used.
                let (Some(labelled), Some(value)) = (index.labelled.get(key), labels.get(key)) else {
                    continue;
                };
                let with_value = labelled.by_value.get(value).into_iter().flatten();
                found.extend(labelled.with_any_value.iter().chain(with_value));
            }
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|at| &self.list[at])
    }

    /// The index of those that opt pods in.
    pub fn opt_ins(&self) -> &OptIns {
        self.opt_ins.get_or_init(|| Arc::new(OptIns::of(&self.list)))
    }

    fn forget_indexes(&mut self) {
        self.index.take();
        self.opt_ins.take();
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.list.binary_search_by(|stored| (*stored.name().name).cmp(name))
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Arc::new(Index::of(&self.list)))
    }
}

impl Index {
    fn of(list: &[Stored]) -> Self {
        let mut index = Self::default();
        let ready = list.iter().enumerate().filter_map(|(at, stored)| match stored {
            Stored::Ready(ready) => Some((at, ready)),
            Stored::Invalid { .. } => None,
        });
        for (at, ready) in ready {
            match &ready.selector {
                None => index.for_all.push(at),
                Some(selector) => match selector.indispensable() {
                    None => index.unlabelled.push(at),
                    Some((key, values)) => index.add(key, values, at),
                },
            }
        }
        index
    }

    fn add(&mut self, key: &str, values: Option<&[String]>, at: usize) {
        let labelled = self.labelled.entry(key.into()).or_default();
        match values {
            None => labelled.with_any_value.push(at),
            Some(values) => {
                for value in values {
                    labelled.by_value.entry(value.as_str().into()).or_default().push(at);
                }
            }
        }
    }
}

impl Deref for Instrumentations {
    type Target = [Stored];

    fn deref(&self) -> &[Stored] {
        &self.list
    }
}

impl<'a> IntoIterator for &'a Instrumentations {
    type Item = &'a Stored;
    type IntoIter = slice::Iter<'a, Stored>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{
        compiled::{About, Compiled},
        reason::ObjectName,
    };
    use otel_webhook_api::{InstrumentationSpec, defaults::DefaultImages};

    fn stored(name: &str, expressions: &serde_json::Value) -> Stored {
        let spec = json!({"selector": {"matchExpressions": expressions}});
        let spec: InstrumentationSpec = serde_json::from_value(spec).expect("a specification");
        let name = ObjectName { namespace: "shop".into(), name: name.into() };
        let compiled = Compiled::new(name, None, &About::default(), &spec, &DefaultImages::default());
        Stored::Ready(Arc::new(compiled.expect("valid")))
    }

    fn all() -> Instrumentations {
        let mut all = Instrumentations::default();
        for (name, expressions) in [
            ("everything", json!([])),
            ("order", json!([{"key": "app", "operator": "In", "values": ["order", "cart", "order"]}])),
            ("cart", json!([{"key": "app", "operator": "In", "values": ["cart"]}])),
            ("any-app", json!([{"key": "app", "operator": "Exists"}])),
            ("no-app", json!([{"key": "app", "operator": "DoesNotExist"}])),
            ("not-order", json!([{"key": "app", "operator": "NotIn", "values": ["order"]}])),
            (
                "both",
                json!([
                    {"key": "tier", "operator": "Exists"},
                    {"key": "app", "operator": "In", "values": ["order"]},
                ]),
            ),
        ] {
            all.store(stored(name, &expressions));
        }
        all
    }

    fn names<'s>(found: impl Iterator<Item = &'s Stored>, labels: Option<&Map<'_>>) -> Vec<String> {
        let fits = |stored: &&Stored| {
            let Stored::Ready(ready) = stored else { return false };
            match (&ready.selector, labels) {
                (Some(selector), Some(labels)) => selector.matches(labels),
                (selector, labels) => selector.is_none() && labels.is_none(),
            }
        };
        found.filter(fits).map(|stored| stored.name().name.to_string()).collect()
    }

    #[test]
    fn every_match_is_found_once() {
        let all = all();
        for labels in [
            r"{}",
            r#"{"app":"order"}"#,
            r#"{"app":"cart","tier":"a"}"#,
            r#"{"tier":"a","app":"order"}"#,
            r#"{"app":"other"}"#,
            r#"{"app":"cart","app":"order"}"#,
            r#"{"app":"order","app":"order"}"#,
        ] {
            let map: Map<'_> = serde_json::from_str(labels).expect("labels");
            let expected = names(all.iter(), Some(&map));
            assert_eq!(names(all.for_labels(&map), Some(&map)), expected, "{labels}");
        }
        assert_eq!(names(all.for_all(), None), ["everything"]);
    }

    #[test]
    fn only_candidates_are_checked() {
        let map: Map<'_> = serde_json::from_str(r#"{"app":"other"}"#).expect("labels");
        let all = all();
        let looked_at: Vec<_> = all.for_labels(&map).map(|stored| &*stored.name().name).collect();
        assert_eq!(looked_at, ["any-app", "no-app", "not-order"]);
    }

    #[test]
    fn the_index_follows_changes() {
        let map: Map<'_> = serde_json::from_str(r#"{"app":"cart"}"#).expect("labels");
        let mut all = all();
        assert_eq!(names(all.for_labels(&map), Some(&map)), ["any-app", "cart", "not-order", "order"]);
        all.forget("cart");
        assert_eq!(names(all.for_labels(&map), Some(&map)), ["any-app", "not-order", "order"]);
        all.store(stored("everything", &json!([{"key": "app", "operator": "In", "values": ["cart"]}])));
        assert_eq!(names(all.for_labels(&map), Some(&map)), ["any-app", "everything", "not-order", "order"]);
        assert_eq!(names(all.for_all(), None), Vec::<String>::new());
    }
}
