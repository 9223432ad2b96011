//! The running pods, in memory: each once, and what the pods of a template share once for all of them.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    failing::PodStatus,
    injected::Agent,
    pod::{RunningPod, Shape},
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
    /// The statuses of pods, each once, with the messages of the pod that was read last.
    statuses: Vec<PodStatus>,
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
    /// What was read of it; `None` if only its metadata was.
    read: Option<Read>,
}

/// What was read of a pod.
#[derive(Clone, Copy, Debug)]
struct Read {
    /// Its agents, as an index.
    agents: u32,
    /// Its status, as an index.
    status: u32,
    /// The hash of its version.
    version: u64,
}

impl Census {
    /// Adds a pod, or replaces what was known of it. Returns whether something has changed.
    ///
    /// The metadata of a pod tells nothing new about its containers, which never change, unless the metadata itself
    /// has changed in what matters.
    pub fn put(&mut self, mut pod: RunningPod) -> bool {
        if let Some(is_changed) = self.update(&mut pod) {
            return is_changed;
        }
        self.forget(&pod.uid);
        let RunningPod {
            workload,
            template,
            name,
            uid,
            created,
            digest,
            resource_version,
            agents,
            status,
            shape,
            ..
        } = pod;
        let key: Arc<str> = template.into();
        let group = match self.groups.entry(Arc::clone(&key)) {
            Entry::Vacant(place) => {
                let (members, combinations, statuses) = (Vec::new(), Vec::new(), Vec::new());
                place.insert(Group { workload, shape, members, combinations, statuses })
            }
            Entry::Occupied(group) => {
                let group = group.into_mut();
                if shape.is_better_than(&group.shape) {
                    group.shape = shape;
                }
                group
            }
        };
        let read = agents.map(|agents| Read {
            agents: group.index_of(agents),
            status: group.index_of_status(status),
            version: hash(&resource_version),
        });
        let uid: Arc<str> = uid.into();
        group.members.push(Member { name: name.into(), uid: Arc::clone(&uid), created, digest, read });
        self.pods.insert(uid, key);
        true
    }

    /// Updates a known pod if nothing but its status can have changed. Returns whether that has.
    fn update(&mut self, pod: &mut RunningPod) -> Option<bool> {
        let group = self.groups.get_mut(self.pods.get(&*pod.uid)?)?;
        let at = group.members.iter().position(|member| *member.uid == *pod.uid)?;
        let Member { digest, read: known, .. } = &group.members[at];
        match (known, &pod.agents) {
            _ if *digest != pod.digest => None,
            (_, None) => Some(false),
            (None, Some(_)) => None,
            (&Some(known), Some(_)) => {
                let status = group.index_of_status(std::mem::take(&mut pod.status));
                group.members[at].read = Some(Read { status, version: hash(&pod.resource_version), ..known });
                Some(status != known.status)
            }
        }
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
        self.member(uid).is_some_and(|member| member.read.is_some())
    }

    /// Returns whether a pod was read as it is in this version.
    pub fn is_read_at(&self, uid: &str, resource_version: &str) -> bool {
        let read = self.member(uid).and_then(|member| member.read);
        read.is_some_and(|read| read.version == hash(resource_version))
    }

    /// Returns the key of the template of a pod; `None` if the pod is not known.
    pub fn template(&self, uid: &str) -> Option<Arc<str>> {
        self.pods.get(uid).cloned()
    }

    /// Returns whether a pod of a template is ready: its others probably become so as well.
    pub fn is_proven(&self, template: &str) -> bool {
        let group = self.groups.get(template);
        group.is_some_and(|group| {
            let mut statuses = group.members.iter().filter_map(|member| group.status_of(member));
            statuses.any(|status| status.is_ready && status.failures.is_empty())
        })
    }

    /// Returns whether a container of a pod cannot start or stay.
    pub fn is_failing(&self, uid: &str) -> bool {
        let group = self.pods.get(uid).and_then(|template| self.groups.get(template));
        let status = group.zip(self.member(uid)).and_then(|(group, member)| group.status_of(member));
        status.is_some_and(|status| !status.failures.is_empty())
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
        member.read.map(|read| &*self.combinations[read.agents as usize])
    }

    /// Returns the status of a member; `None` if only its metadata was read.
    pub fn status_of(&self, member: &Member) -> Option<&PodStatus> {
        member.read.map(|read| &self.statuses[read.status as usize])
    }

    fn index_of(&mut self, agents: Vec<Agent>) -> u32 {
        let known = self.combinations.iter().position(|known| *known == agents);
        let index = known.unwrap_or_else(|| {
            self.combinations.push(agents);
            self.combinations.len() - 1
        });
        u32::try_from(index).expect("there are fewer combinations than pods")
    }

    /// Messages name the pod, and change with each attempt: those of one pod stand for all.
    fn index_of_status(&mut self, status: PodStatus) -> u32 {
        let known = self.statuses.iter().position(|known| known.is_like(&status));
        let index = known.unwrap_or(self.statuses.len());
        match self.statuses.get_mut(index) {
            Some(known) => *known = status,
            None => self.statuses.push(status),
        }
        u32::try_from(index).expect("there are few different statuses")
    }
}

/// Only compared with others of the same process.
fn hash(version: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    version.hash(&mut hasher);
    hasher.finish()
}
