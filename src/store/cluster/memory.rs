//! A memory that does not grow with the cluster.

use std::{collections::HashMap, hash::Hash};

/// How many answers are kept at most in each of two generations.
const GENERATION: usize = 4096;

/// The newest answers, and those before them: when the newest are many, the
/// older ones are dropped. What is used moves to the newest.
#[derive(Debug)]
pub struct Memory<K, V> {
    newest: HashMap<K, V>,
    older: HashMap<K, V>,
}

impl<K, V> Default for Memory<K, V> {
    fn default() -> Self {
        Self { newest: HashMap::new(), older: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Memory<K, V> {
    /// An answer, if it is still known.
    pub fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.newest.get(key) {
            return Some(value.clone());
        }
        let value = self.older.remove(key)?;
        self.put(key.clone(), value.clone());
        Some(value)
    }

    /// Keeps an answer.
    pub fn put(&mut self, key: K, value: V) {
        if self.newest.len() >= GENERATION {
            self.older = std::mem::take(&mut self.newest);
        }
        self.newest.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_keeps_what_is_used() {
        let mut memory = Memory::default();
        for number in 0..3 * GENERATION {
            memory.put(number, ());
            assert!(memory.get(&0).is_some(), "used all the time, forgotten at {number}");
        }
        assert!(memory.newest.len() + memory.older.len() <= 2 * GENERATION);
        assert!(memory.get(&1).is_none(), "never used again, and still there");
    }
}
