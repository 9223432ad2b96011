//! The Instrumentations of a namespace.
//!
//! Selectors are checked one after the other: a thousand of them cost a review some tens of microseconds.

use std::{ops::Deref, slice, sync::Arc};

use super::stored::Stored;
use crate::{
    compiled::{Compiled, OptIn},
    language::Language,
};

/// Instrumentations, sorted by name.
#[derive(Clone, Debug, Default)]
pub struct Instrumentations(Vec<Stored>);

impl Instrumentations {
    /// The Instrumentation with a name.
    pub fn get(&self, name: &str) -> Option<&Stored> {
        self.position(name).ok().map(|at| &self.0[at])
    }

    /// Inserts or replaces one.
    pub fn store(&mut self, stored: Stored) {
        match self.position(&stored.name().name) {
            Ok(at) => self.0[at] = stored,
            Err(at) => self.0.insert(at, stored),
        }
    }

    /// Removes one.
    pub fn forget(&mut self, name: &str) {
        self.retain(|stored| *stored.name().name != *name);
    }

    /// Removes those that `keep` does not keep.
    pub fn retain(&mut self, keep: impl FnMut(&Stored) -> bool) {
        self.0.retain(keep);
    }

    /// Those that opt pods in by their selectors, by name.
    pub fn opting_in(&self) -> impl Iterator<Item = (&Arc<Compiled>, &OptIn)> {
        self.0.iter().filter_map(|stored| match stored {
            Stored::Ready(ready) => Some((ready, ready.opt_in.as_ref()?)),
            Stored::Invalid { .. } => None,
        })
    }

    /// The same of a language.
    pub fn opting_in_to(&self, language: &Language) -> impl Iterator<Item = (&Arc<Compiled>, &OptIn)> {
        self.opting_in().filter(|(_, opt_in)| opt_in.languages.has(language))
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|stored| (*stored.name().name).cmp(name))
    }
}

impl Deref for Instrumentations {
    type Target = [Stored];

    fn deref(&self) -> &[Stored] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Instrumentations {
    type Item = &'a Stored;
    type IntoIter = slice::Iter<'a, Stored>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
