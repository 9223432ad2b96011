//! The Instrumentations of a namespace that opt pods in by their selectors, by language.
//!
//! A review costs about the same however many there are: only those are checked that require a label of the pod, the
//! best ones first.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::stored::Stored;
use crate::{
    compiled::Compiled,
    language::{LANGUAGES, Language},
    selector::{Labels, Selector},
};

/// Those that opt pods in.
#[derive(Clone, Debug, Default)]
pub struct OptIns {
    /// Those for pods of their own namespace, by the position of the language.
    own: BTreeMap<usize, ByLabel>,
    /// Those that select namespaces.
    across: BTreeMap<usize, Across>,
}

/// Those that select namespaces: by a label that they require of the pod, or else of the namespace.
#[derive(Clone, Debug, Default)]
struct Across {
    by_pod: ByLabel,
    by_namespace: ByLabel,
}

/// Instrumentations by one label that they require, the best ones first in each list.
#[derive(Clone, Debug, Default)]
struct ByLabel {
    /// Those that require none.
    unlabelled: Vec<Arc<Compiled>>,
    /// The others, by the key of the label.
    labelled: HashMap<Box<str>, Labelled>,
}

/// Those that require a label with a certain key.
#[derive(Clone, Debug, Default)]
struct Labelled {
    with_any_value: Vec<Arc<Compiled>>,
    by_value: HashMap<Box<str>, Vec<Arc<Compiled>>>,
}

/// The best ones of those that match: a selector that is not empty comes before an empty one, then the higher
/// priority (D9).
#[derive(Debug, Default)]
pub struct Best<'s> {
    found: Vec<&'s Arc<Compiled>>,
    /// The first one by name that matches and cannot be used for the language.
    pub unusable: Option<&'s Arc<Compiled>>,
}

fn rank(ready: &Compiled) -> (bool, i32) {
    (ready.selector.is_some(), ready.priority)
}

fn selects(ready: &Compiled, pod: &impl Labels) -> bool {
    ready.selector.as_ref().is_none_or(|selector| selector.matches(pod))
}

impl<'s> Best<'s> {
    /// The best ones, by name.
    pub fn into_found(mut self) -> Vec<&'s Arc<Compiled>> {
        // A repeated label of a pod finds them twice.
        self.found.sort_by(|one, other| one.name.cmp(&other.name));
        self.found.dedup_by(|one, other| Arc::ptr_eq(one, other));
        self.found
    }

    /// Whether nothing has matched.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.unusable.is_none()
    }

    /// Takes those of a list that fit. The rest of the list is not checked once a better one is known.
    fn take(&mut self, list: &'s [Arc<Compiled>], language: &Language, fits: impl Fn(&Compiled) -> bool) {
        for ready in list {
            let best = self.found.first().map(|best| rank(best));
            if best.is_some_and(|best| best > rank(ready)) {
                return;
            }
            if !fits(ready) {
                continue;
            }
            if ready.problem(language).is_some() {
                let is_first = self.unusable.is_none_or(|known| ready.name < known.name);
                self.unusable = Some(ready).filter(|_| is_first).or(self.unusable);
                continue;
            }
            if best.is_some_and(|best| best < rank(ready)) {
                self.found.clear();
            }
            self.found.push(ready);
        }
    }
}

impl OptIns {
    /// Indexes those of a list that opt pods in.
    pub fn of(list: &[Stored]) -> Self {
        let mut opting: Vec<&Arc<Compiled>> = list.iter().filter_map(opts_in).collect();
        opting.sort_by_key(|ready| Reverse(rank(ready)));
        let counts = Counts::of(&opting);
        let mut index = Self::default();
        for ready in opting {
            let Some(opt_in) = &ready.opt_in else { continue };
            for language in LANGUAGES.into_iter().filter(|language| opt_in.languages.has(language)) {
                let key = ready.selector.as_ref().and_then(|selector| counts.rarest(selector));
                if !opt_in.selects_namespaces() {
                    index.own.entry(language.index()).or_default().add(key, ready);
                    continue;
                }
                let across = index.across.entry(language.index()).or_default();
                if key.is_some() {
                    across.by_pod.add(key, ready);
                } else {
                    across.by_namespace.add(opt_in.namespaces().and_then(Selector::indispensable), ready);
                }
            }
        }
        index
    }

    /// Whether none opts a pod in.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.across.is_empty()
    }

    /// Those that select a pod of their own namespace.
    pub fn own<'s>(&'s self, language: &Language, pod: &impl Labels) -> Best<'s> {
        let mut best = Best::default();
        if let Some(own) = self.own.get(&language.index()) {
            own.lists(pod, |list| best.take(list, language, |ready| selects(ready, pod)));
        }
        best
    }

    /// Those that select a namespace and a pod of it.
    pub fn across<'s>(&'s self, language: &Language, namespace: &impl Labels, pod: &impl Labels) -> Best<'s> {
        let mut best = Best::default();
        let Some(across) = self.across.get(&language.index()) else { return best };
        let fits = |ready: &Compiled| {
            let opt_in = ready.opt_in.as_ref();
            selects(ready, pod) && opt_in.is_some_and(|opt_in| opt_in.selects(namespace))
        };
        across.by_pod.lists(pod, |list| best.take(list, language, fits));
        across.by_namespace.lists(namespace, |list| best.take(list, language, fits));
        best
    }

    /// The first one by name that selects a pod, and namespaces, in whichever of them the pod is.
    pub fn selecting_namespaces(&self, language: &Language, pod: &impl Labels) -> Option<&Arc<Compiled>> {
        let across = self.across.get(&language.index())?;
        let all = across.by_pod.all().chain(across.by_namespace.all());
        all.filter(|ready| selects(ready, pod)).min_by_key(|ready| &ready.name)
    }

    /// Those that can opt in pods of a namespace with these labels; `None` for their own.
    pub fn for_namespace(&self, namespace: Option<&impl Labels>) -> Vec<&Arc<Compiled>> {
        let Some(namespace) = namespace else {
            return self.own.values().flat_map(ByLabel::all).collect();
        };
        let all =
            self.across.values().flat_map(|across| across.by_pod.all().chain(across.by_namespace.all()));
        all.filter(|ready| ready.opt_in.as_ref().is_some_and(|opt_in| opt_in.selects(namespace))).collect()
    }
}

fn opts_in(stored: &Stored) -> Option<&Arc<Compiled>> {
    match stored {
        Stored::Ready(ready) => Some(ready).filter(|ready| ready.opt_in.is_some()),
        Stored::Invalid { .. } => None,
    }
}

/// How many selectors require each value of a label.
#[derive(Default)]
struct Counts<'s>(HashMap<(&'s str, &'s str), usize>);

impl<'s> Counts<'s> {
    fn of(all: &[&'s Arc<Compiled>]) -> Self {
        let mut counts = Self::default();
        for selector in all.iter().filter_map(|ready| ready.selector.as_ref()) {
            for (key, values) in selector.among() {
                for value in values {
                    *counts.0.entry((key, value)).or_default() += 1;
                }
            }
        }
        counts
    }

    /// The label that a selector requires, and that the fewest others require.
    fn rarest<'k>(&self, selector: &'k Selector) -> Option<(&'k str, Option<&'k [String]>)> {
        let count = |(key, values): &(&str, &[String])| {
            values.iter().filter_map(|value| self.0.get(&(*key, value.as_str()))).max().copied()
        };
        let rarest = selector.among().min_by_key(count).map(|(key, values)| (key, Some(values)));
        rarest.or_else(|| selector.indispensable())
    }
}

impl ByLabel {
    fn add(&mut self, key: Option<(&str, Option<&[String]>)>, ready: &Arc<Compiled>) {
        let Some((key, values)) = key else { return self.unlabelled.push(Arc::clone(ready)) };
        let labelled = self.labelled.entry(key.into()).or_default();
        let Some(values) = values else { return labelled.with_any_value.push(Arc::clone(ready)) };
        for (at, value) in values.iter().enumerate() {
            if !values[..at].contains(value) {
                labelled.by_value.entry(value.as_str().into()).or_default().push(Arc::clone(ready));
            }
        }
    }

    /// Calls a function with the lists of those that labels may match. A pod may have very many labels, and selectors
    /// may require very many keys: the fewer are looked up.
    fn lists<'s>(&'s self, labels: &impl Labels, mut take: impl FnMut(&'s [Arc<Compiled>])) {
        take(&self.unlabelled);
        let mut take_value = |labelled: &'s Labelled, value: &str| {
            take(&labelled.with_any_value);
            if let Some(list) = labelled.by_value.get(value) {
                take(list);
            }
        };
        if self.labelled.len() <= labels.count() {
            for (key, labelled) in &self.labelled {
                if let Some(value) = labels.value(key) {
                    take_value(labelled, value);
                }
            }
            return;
        }
        for (key, _) in labels.all() {
            // The last of a repeated label is used.
            if let Some((labelled, value)) = self.labelled.get(key).zip(labels.value(key)) {
                take_value(labelled, value);
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Compiled>> {
        let labelled = self.labelled.values();
        let labelled = labelled.flat_map(|one| one.by_value.values().chain([&one.with_any_value]));
        labelled.flatten().chain(&self.unlabelled)
    }
}

#[cfg(test)]
mod tests;
