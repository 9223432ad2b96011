//! The running pods, in memory: each once, and what the pods of a template share once for all of them.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    pod::{Agent, RunningPod},
    shape::Shape,
    workload::Workload,
};

/// The running pods that have an agent or opt in.
#[derive(Debug, Default)]
pub struct Census {
    groups: HashMap<Arc<str>, Group>,
    /// The group of each pod, by its UID.
    pods: HashMap<Arc<str>, Arc<str>>,
}

/// The pods of one template.
#[derive(Debug)]
pub struct Group {
    /// Their workload.
    pub workload: Workload,
    /// One of them without its agents, of which most is known.
    pub shape: Shape,
    /// The pods.
    pub members: Vec<Member>,
    /// The agents of pods, each combination once.
    combinations: Vec<Vec<Agent>>,
}

/// A pod of a group.
#[derive(Debug)]
pub struct Member {
    /// Its name.
    pub name: Box<str>,
    /// Its UID.
    pub uid: Arc<str>,
    /// When it was created.
    pub created: Timestamp,
    /// Changes with the metadata that matters.
    digest: u64,
    /// Its agents, as an index; `None` if only its metadata was read.
    agents: Option<u32>,
}

impl Census {
    /// Adds a pod, or replaces what was known of it. Returns whether something has changed.
    ///
    /// The metadata of a pod tells nothing new about its containers, which never change, unless the metadata itself
    /// has changed in what matters.
    pub fn put(&mut self, pod: RunningPod) -> bool {
        let known = self.member(&pod.uid).filter(|known| known.digest == pod.digest);
        if known.is_some() && (pod.agents.is_none() || known.is_some_and(|known| known.agents.is_some())) {
            return false;
        }
        self.forget(&pod.uid);
        let RunningPod { workload, template, name, uid, created, digest, agents, shape } = pod;
        let key: Arc<str> = template.into();
        let group = match self.groups.entry(Arc::clone(&key)) {
            Entry::Vacant(place) => {
                place.insert(Group { workload, shape, members: Vec::new(), combinations: Vec::new() })
            }
            Entry::Occupied(group) => {
                let group = group.into_mut();
                if shape.is_better_than(&group.shape) {
                    group.shape = shape;
                }
                group
            }
        };
        let agents = agents.map(|agents| group.index_of(agents));
        let uid: Arc<str> = uid.into();
        group.members.push(Member { name: name.into(), uid: Arc::clone(&uid), created, digest, agents });
        self.pods.insert(uid, key);
        true
    }

    /// Removes a pod. Returns whether it was there.
    pub fn forget(&mut self, uid: &str) -> bool {
        let Some(key) = self.pods.remove(uid) else { return false };
        if let Some(group) = self.groups.get_mut(&key) {
            group.members.retain(|member| &*member.uid != uid);
            if group.members.is_empty() {
                self.groups.remove(&key);
            }
        }
        true
    }

    /// Removes the pods that are not among these.
    pub fn keep(&mut self, uids: &HashSet<Arc<str>>) {
        let gone: Vec<_> = self.pods.keys().filter(|uid| !uids.contains(*uid)).cloned().collect();
        for uid in gone {
            self.forget(&uid);
        }
    }

    /// Returns whether a pod is known with its containers.
    pub fn is_read(&self, uid: &str) -> bool {
        self.member(uid).is_some_and(|member| member.agents.is_some())
    }

    /// Returns the UID of a pod as it is kept here; `None` if the pod is not known.
    pub fn uid(&self, uid: &str) -> Option<Arc<str>> {
        self.pods.get_key_value(uid).map(|(uid, _)| Arc::clone(uid))
    }

    /// Returns the namespace and the name of a pod.
    pub fn place(&self, uid: &str) -> Option<(&str, &str)> {
        let group = self.groups.get(self.pods.get(uid)?)?;
        Some((&group.workload.namespace, &self.member(uid)?.name))
    }

    fn member(&self, uid: &str) -> Option<&Member> {
        let group = self.groups.get(self.pods.get(uid)?)?;
        group.members.iter().find(|member| &*member.uid == uid)
    }

    /// Returns the number of pods.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Returns whether there is no pod.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Returns the pods by their templates.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }
}

impl Group {
    /// Returns the agents of a member; `None` if only its metadata was read.
    pub fn agents_of(&self, member: &Member) -> Option<&[Agent]> {
        member.agents.map(|index| &*self.combinations[index as usize])
    }

    fn index_of(&mut self, agents: Vec<Agent>) -> u32 {
        let known = self.combinations.iter().position(|known| *known == agents);
        let index = known.unwrap_or_else(|| {
            self.combinations.push(agents);
            self.combinations.len() - 1
        });
        u32::try_from(index).expect("there are fewer combinations than pods")
    }
}
