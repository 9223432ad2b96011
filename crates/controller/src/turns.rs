//! The pods to read one by one, in an order in which each template has its turn.
//!
//! The pods of a template mostly start, or fail, alike. So one pod of each template is read before a second one of any,
//! and those of templates with a ready pod come last.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    hash::Hash,
    sync::Arc,
};

/// The pods to read, by their templates.
#[derive(Debug)]
pub struct Turns<T> {
    /// The pods of each template by their UIDs, with the versions that the watch has shown.
    waiting: HashMap<T, BTreeMap<Arc<str>, Box<str>>>,
    /// The templates in the order of their turns.
    order: VecDeque<T>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T: Clone + Eq + Hash> Turns<T> {
    /// Adds a pod, or replaces the version with which it waits.
    pub fn push(&mut self, template: T, uid: Arc<str>, version: &str) {
        let pods = self.waiting.entry(template).or_insert_with_key(|template| {
            self.order.push_back(template.clone());
            BTreeMap::new()
        });
        pods.insert(uid, version.into());
    }

    /// Returns whether no pod waits.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Removes the next pod, with its version. `is_proven` says whether a template has a ready pod.
    pub fn pop(&mut self, is_proven: impl Fn(&T) -> bool) -> Option<(Arc<str>, Box<str>)> {
        let next = self.order.iter().position(|template| !is_proven(template)).unwrap_or(0);
        let template = self.order.remove(next)?;
        let pods = self.waiting.get_mut(&template)?;
        let pod = pods.pop_first();
        if pods.is_empty() {
            self.waiting.remove(&template);
        } else {
            self.order.push_back(template);
        }
        pod
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(turns: &mut Turns<String>, proven: &str) -> Vec<String> {
        let next =
            || turns.pop(|template| template == proven).map(|(uid, version)| format!("{uid}@{version}"));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn each_template_has_its_turn_and_those_with_a_ready_pod_come_last() {
        let mut turns = Turns::default();
        for uid in ["a1", "a2", "b1", "b2", "b3", "c1"] {
            turns.push(uid[..1].into(), uid.into(), "1");
        }
        turns.push("b".into(), "b2".into(), "2");
        assert_eq!(order(&mut turns, "a"), ["b1@1", "c1@1", "b2@2", "b3@1", "a1@1", "a2@1"]);
        assert!(turns.is_empty());
        turns.push("a".into(), "a1".into(), "3");
        assert_eq!(order(&mut turns, ""), ["a1@3"]);
    }
}
