//! A cache of bounded size.

use std::{collections::HashMap, hash::Hash};

/// The maximum number of entries in each of two generations.
const GENERATION: usize = 4096;

/// Two generations of entries. When the new one is full, it replaces the old one. Used entries move to the new one.
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
    /// Returns an entry, if it is still cached.
    pub fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.newest.get(key) {
            return Some(value.clone());
        }
        let value = self.older.remove(key)?;
        self.put(key.clone(), value.clone());
        Some(value)
    }

    /// Caches an entry.
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
    fn the_cache_is_bounded_and_keeps_used_entries() {
        let mut memory = Memory::default();
        for number in 0..3 * GENERATION {
            memory.put(number, ());
            assert!(memory.get(&0).is_some(), "used constantly, evicted at {number}");
        }
        assert!(memory.newest.len() + memory.older.len() <= 2 * GENERATION);
        assert!(memory.get(&1).is_none(), "never used again, but not evicted");
    }
}
