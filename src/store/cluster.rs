//! Owners that only the API server can tell: asked for once, and remembered.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use k8s_openapi::api::{apps::v1::ReplicaSet, batch::v1::Job};
use kube::{Api, Client, Resource};

use crate::inject::workload::{Lookup, Owner, OwnerKind, OwnerQuery, Owners};

/// How long a review waits for the answer. The name of an owner is worth
/// little compared to a pod that starts late.
const PATIENCE: Duration = Duration::from_millis(500);

/// How many owners are remembered at most, in each of two generations.
const GENERATION: usize = 4096;

/// Owners by look-up in the cluster.
pub struct ClusterOwners {
    client: Client,
    remembered: Mutex<Memory>,
}

/// What is known after asking, for one review.
#[derive(Debug)]
pub struct Learned(HashMap<Key, Lookup>);

type Key = (OwnerKind, Box<str>, Box<str>, Box<str>);

/// The newest answers, and those before them: when the newest are many, the
/// older ones are dropped, so that memory does not grow with the cluster.
#[derive(Debug, Default)]
struct Memory {
    newest: HashMap<Key, Vec<Owner>>,
    older: HashMap<Key, Vec<Owner>>,
}

impl ClusterOwners {
    /// Asks by this client.
    pub fn new(client: Client) -> Self {
        Self { client, remembered: Mutex::default() }
    }

    /// Answers what it can: from memory, else from the API server, all at once
    /// and within the time that a review waits.
    pub async fn learn(&self, queries: &[OwnerQuery<'_>]) -> Learned {
        let lookups = queries.iter().map(|query| async { (key(query), self.learn_one(query).await) });
        Learned(join_all(lookups).await.into_iter().collect())
    }

    async fn learn_one(&self, query: &OwnerQuery<'_>) -> Lookup {
        if let Some(owners) = self.memory(|memory| memory.get(&key(query))) {
            return Lookup::Known(owners);
        }
        let asked = tokio::time::timeout(PATIENCE, self.ask(query)).await;
        let unanswered = |problem: &dyn std::fmt::Display| {
            tracing::warn!(namespace = query.namespace, owner = query.name, %problem, "an owner is not known");
            Lookup::Unknown
        };
        match asked {
            Ok(Ok(Some(owners))) => {
                self.memory(|memory| memory.put(key(query), owners.clone()));
                Lookup::Known(owners)
            }
            Ok(Ok(None)) => Lookup::Absent,
            Ok(Err(error)) => unanswered(&error),
            Err(elapsed) => unanswered(&elapsed),
        }
    }

    async fn ask(&self, query: &OwnerQuery<'_>) -> kube::Result<Option<Vec<Owner>>> {
        match query.kind {
            OwnerKind::ReplicaSet => self.get::<ReplicaSet>(query).await,
            OwnerKind::Job => self.get::<Job>(query).await,
        }
    }

    /// Metadata alone: the rest of the object is of no use, and many times larger.
    async fn get<K>(&self, query: &OwnerQuery<'_>) -> kube::Result<Option<Vec<Owner>>>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
        K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), query.namespace);
        let found = api.get_metadata_opt(query.name).await?;
        // One of the same name that is not the pod's owner says nothing of it.
        let same = |uid: &Option<String>| query.uid.is_empty() || uid.as_deref() == Some(query.uid);
        let own = found.filter(|found| same(&found.metadata.uid));
        Ok(own.map(|own| own.metadata.owner_references.unwrap_or_default().into_iter().map(owner).collect()))
    }

    fn memory<T>(&self, use_it: impl FnOnce(&mut Memory) -> T) -> T {
        use_it(&mut self.remembered.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Memory {
    fn get(&mut self, key: &Key) -> Option<Vec<Owner>> {
        if let Some(owners) = self.newest.get(key) {
            return Some(owners.clone());
        }
        let owners = self.older.remove(key)?;
        self.put(key.clone(), owners.clone());
        Some(owners)
    }

    fn put(&mut self, key: Key, owners: Vec<Owner>) {
        if self.newest.len() >= GENERATION {
            self.older = std::mem::take(&mut self.newest);
        }
        self.newest.insert(key, owners);
    }
}

impl Owners for Learned {
    /// What was not asked for is not known; a ReplicaSet's Deployment is then
    /// derived from its name.
    fn look_up(&self, query: OwnerQuery<'_>) -> Lookup {
        self.0.get(&key(&query)).cloned().unwrap_or(Lookup::Unknown)
    }
}

fn key(query: &OwnerQuery<'_>) -> Key {
    (query.kind, query.namespace.into(), query.name.into(), query.uid.into())
}

fn owner(reference: k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference) -> Owner {
    Owner {
        kind: reference.kind.into(),
        name: reference.name.into(),
        uid: reference.uid.into(),
        controller: reference.controller.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_keeps_what_is_used() {
        let key = |number: usize| (OwnerKind::Job, "n".into(), number.to_string().into(), "u".into());
        let mut memory = Memory::default();
        for number in 0..3 * GENERATION {
            memory.put(key(number), Vec::new());
            assert!(memory.get(&key(0)).is_some(), "used all the time, forgotten at {number}");
        }
        assert!(memory.newest.len() + memory.older.len() <= 2 * GENERATION);
        assert!(memory.get(&key(1)).is_none(), "never used again, and still there");
    }
}
