//! The running pods, in memory: what the pods of a template share is kept once for all of them.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    sync::{Arc, LazyLock},
};

use jiff::Timestamp;

use crate::{
    failing::PodStatus,
    heard::Sender,
    injected::{Agent, Decided},
    pod::{RunningPod, Shape, hash},
    workload::Workload,
};

/// The size of all texts of shapes, in bytes: for each pod, and in addition in any cluster. Pods mostly share them. Of
/// specifications for which there is no room, only the names of containers are kept, and else nothing.
const TEXTS: usize = 110;
const MORE_TEXTS: usize = 4 << 20;

/// What the set of texts needs for each, about, in bytes.
const EACH_TEXT: usize = 40;

/// The running pods that have an agent or opt in.
#[derive(Debug, Default)]
pub struct Census {
    /// The pods of each workload, by its name as a text.
    workloads: HashMap<Arc<str>, Vec<Member>>,
    /// The workload of each pod, by its UID.
    pods: HashMap<Arc<str>, Arc<str>>,
    /// The workloads with pods that have changed since that was last asked.
    changed: HashSet<Arc<str>>,
    /// The agents of pods with what was decided on them and where they are, each combination once.
    agents: Pool<Combination>,
    texts: Pool<str>,
    /// The size of the texts, in bytes.
    size: usize,
}

type Combination = (Vec<Agent>, Vec<Decided>, Vec<Sender>);

/// Values, each of which is kept once.
#[derive(Debug)]
struct Pool<T: ?Sized>(HashSet<Arc<T>>);

/// The pods of one workload.
#[derive(Clone, Copy, Debug)]
pub struct Group<'c> {
    key: &'c str,
    /// The pods.
    pub members: &'c [Member],
}

/// A pod of a group.
#[derive(Debug)]
pub struct Member {
    /// Its UID.
    pub uid: Arc<str>,
    /// When it was created.
    pub created: Timestamp,
    /// Its name; `None` for that of its workload.
    name: Option<Box<str>>,
    template: u64,
    /// Changes with the metadata that matters.
    digest: u64,
    /// It without its agents; `None` if there is no room for it.
    shape: Option<Shape>,
    /// What was read of it; `None` if only its metadata was.
    read: Option<Read>,
}

/// What was read of a pod. Pods of a workload share what is equal.
#[derive(Clone, Debug)]
struct Read {
    agents: Arc<Combination>,
    status: Arc<PodStatus>,
    /// Since when it is Ready, in Unix seconds; 0 if it is not.
    ready_since: u32,
    /// Half of the hash of its version.
    version: u32,
}

/// What tells the pods of one template from all others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template {
    workload: Arc<str>,
    digest: u64,
}

impl Census {
    /// Adds a pod, or replaces what was known of it. Returns whether something has changed.
    ///
    /// The metadata of a pod tells nothing new about its containers, which never change, unless the metadata itself
    /// has changed in what matters.
    pub fn put(&mut self, mut pod: RunningPod) -> bool {
        if let Some(is_changed) = self.update(&mut pod) {
            if is_changed {
                self.changed.extend(self.pods.get(&*pod.uid).cloned());
            }
            return is_changed;
        }
        self.forget(&pod.uid);
        let RunningPod { workload, template, name, uid, created, digest, decided, status, .. } = pod;
        let shape = self.share(pod.shape);
        let of = |agents| self.agents.share(Arc::new((agents, decided, pod.senders)));
        let agents = pod.agents.map(of);
        let key = key_of(&workload);
        let key = self.workloads.get_key_value(&*key).map_or(key.into(), |(key, _)| Arc::clone(key));
        let members = self.workloads.entry(Arc::clone(&key)).or_default();
        let read = agents.map(|agents| Read {
            agents,
            status: shared_status(members, status),
            ready_since: seconds(pod.ready_since),
            version: half(&pod.resource_version),
        });
        let uid: Arc<str> = uid.into();
        let name = (name != workload.name).then(|| name.into());
        // A vector that doubles would be half empty.
        if members.len() == members.capacity() {
            members.reserve_exact(members.len() / 8 + 1);
        }
        members.push(Member { uid: Arc::clone(&uid), created, name, template, digest, shape, read });
        self.changed.insert(Arc::clone(&key));
        self.pods.insert(uid, key);
        true
    }

    /// Updates a known pod if nothing but its status can have changed. Returns whether that has.
    fn update(&mut self, pod: &mut RunningPod) -> Option<bool> {
        let members = self.workloads.get_mut(self.pods.get(&*pod.uid)?)?;
        let at = members.iter().position(|member| *member.uid == *pod.uid)?;
        let Member { digest, read, .. } = &members[at];
        match (read.clone(), &pod.agents) {
            _ if *digest != pod.digest => None,
            (_, None) => Some(false),
            (None, Some(_)) => None,
            (Some(known), Some(_)) => {
                let status = shared_status(members, std::mem::take(&mut pod.status));
                let is_same = status.is_like(&known.status);
                let (version, ready_since) = (half(&pod.resource_version), seconds(pod.ready_since));
                members[at].read = Some(Read { status, ready_since, version, ..known });
                Some(!is_same)
            }
        }
    }

    /// Keeps the texts of a shape once, as far as there is room for them.
    fn share(&mut self, shape: Shape) -> Option<Shape> {
        let room = (MORE_TEXTS + TEXTS * self.pods.len()).saturating_sub(self.size);
        let needs = |shape: &Shape| {
            let new = [&shape.labels, &shape.rest].into_iter().filter(|text| !self.texts.has(text));
            new.map(|text| size_of_text(text)).sum::<usize>()
        };
        let shape = if needs(&shape) <= room { shape } else { shape.shortened() };
        let size = needs(&shape);
        (size <= room).then(|| {
            self.size += size;
            let (labels, rest) = (self.texts.share(shape.labels), self.texts.share(shape.rest));
            Shape { labels, rest, ..shape }
        })
    }

    /// Removes a pod. Returns whether it was there.
    pub fn forget(&mut self, uid: &str) -> bool {
        let Some(key) = self.pods.remove(uid) else { return false };
        let Some(members) = self.workloads.get_mut(&key) else { return true };
        let gone = members.iter().position(|member| &*member.uid == uid).map(|at| members.swap_remove(at));
        if members.is_empty() {
            self.workloads.remove(&key);
        }
        self.changed.insert(key);
        let Some(Member { shape, read, .. }) = gone else { return true };
        if let Some(read) = read {
            self.agents.release(&read.agents);
        }
        for text in shape.into_iter().flat_map(|shape| [shape.labels, shape.rest]) {
            if self.texts.release(&text) {
                self.size -= size_of_text(&text);
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
        let read = self.member(uid).and_then(|member| member.read.as_ref());
        read.is_some_and(|read| read.version == half(resource_version))
    }

    /// Returns the template of a pod; `None` if the pod is not known.
    pub fn template(&self, uid: &str) -> Option<Template> {
        let workload = Arc::clone(self.pods.get(uid)?);
        Some(Template { workload, digest: self.member(uid)?.template })
    }

    /// Returns whether a pod of a template is ready: its others probably become so as well.
    pub fn is_proven(&self, template: &Template) -> bool {
        let members = self.workloads.get(&template.workload).into_iter().flatten();
        let mut own = members.filter(|member| member.template == template.digest);
        own.any(|member| member.status().is_some_and(|status| status.is_ready && status.failures.is_empty()))
    }

    /// Returns whether a container of a pod cannot start or stay.
    pub fn is_failing(&self, uid: &str) -> bool {
        let status = self.member(uid).and_then(Member::status);
        status.is_some_and(|status| !status.failures.is_empty())
    }

    /// Returns the UID of a pod as it is kept here; `None` if the pod is not known.
    pub fn uid(&self, uid: &str) -> Option<Arc<str>> {
        self.pods.get_key_value(uid).map(|(uid, _)| Arc::clone(uid))
    }

    /// Returns the namespace and the name of a pod.
    pub fn place(&self, uid: &str) -> Option<(&str, &str)> {
        let group = Group { key: self.pods.get(uid)?, members: &[] };
        Some((group.namespace(), group.name_of(self.member(uid)?)))
    }

    fn member(&self, uid: &str) -> Option<&Member> {
        self.workloads.get(self.pods.get(uid)?)?.iter().find(|member| &*member.uid == uid)
    }

    /// Returns the number of pods.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Returns whether there is no pod.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Returns the keys of the workloads with pods that have changed since the last call, of those that are gone as well.
    pub fn take_changed(&mut self) -> HashSet<Arc<str>> {
        std::mem::take(&mut self.changed)
    }

    /// Marks the pods of a workload as changed.
    pub fn touch(&mut self, workload: &Workload) {
        self.changed.insert(key_of(workload).into());
    }

    /// Marks the pods of workloads as changed, by their keys.
    pub(crate) fn touch_all(&mut self, keys: Vec<Arc<str>>) {
        self.changed.extend(keys);
    }

    /// Returns the pods of a workload by its key; `None` if there are none.
    pub fn group<'c>(&'c self, key: &'c str) -> Option<Group<'c>> {
        self.workloads.get(key).map(|members| Group { key, members })
    }

    /// Returns the pods by their workloads.
    pub fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        self.workloads.iter().map(|(key, members)| Group { key, members })
    }
}

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<T: ?Sized + Eq + Hash> Pool<T> {
    fn has(&self, value: &T) -> bool {
        self.0.contains(value)
    }

    fn share(&mut self, value: Arc<T>) -> Arc<T> {
        if let Some(known) = self.0.get(&value) {
            return Arc::clone(known);
        }
        self.0.insert(Arc::clone(&value));
        value
    }

    /// Ends one use of a value. Returns whether that was the last.
    fn release(&mut self, value: &Arc<T>) -> bool {
        // One is the caller's, and one is in the pool.
        Arc::strong_count(value) == 2 && self.0.remove(value)
    }
}

fn size_of_text(text: &str) -> usize {
    text.len() + EACH_TEXT
}

/// Both are kept for each pod, where eight bytes are many.
fn half(version: &str) -> u32 {
    (hash(&version) >> 32) as u32
}

fn seconds(time: Option<Timestamp>) -> u32 {
    time.and_then(|time| u32::try_from(time.as_second()).ok()).unwrap_or_default()
}

/// None of the three parts can have the separator.
fn key_of(Workload { namespace, kind, name }: &Workload) -> String {
    [&**namespace, kind, name].join("/")
}

impl<'c> Group<'c> {
    /// Returns those of a workload without any, by its key.
    pub fn without_pods(key: &'c str) -> Self {
        Self { key, members: &[] }
    }

    /// Returns the key of the workload.
    pub fn key(self) -> &'c str {
        self.key
    }

    fn parts(self) -> [&'c str; 3] {
        let mut parts = self.key.splitn(3, '/');
        std::array::from_fn(|_| parts.next().unwrap_or_default())
    }

    /// Returns the workload.
    pub fn workload(self) -> Workload {
        let [namespace, kind, name] = self.parts();
        Workload::new(kind, namespace, name)
    }

    /// Returns the namespace.
    pub fn namespace(self) -> &'c str {
        self.parts()[0]
    }

    /// Returns the name of a member.
    pub fn name_of<'m>(self, member: &'m Member) -> &'m str
    where
        'c: 'm,
    {
        member.name.as_deref().unwrap_or(self.parts()[2])
    }

    /// Returns the different shapes of its pods.
    pub fn shapes(self) -> HashMap<ShapeKey, &'c Shape> {
        let shapes = self.members.iter().filter_map(|member| member.shape.as_ref());
        shapes.map(|shape| (shape_key(shape), shape)).collect()
    }
}

/// Equal for equal shapes of a census, which has each text once.
pub type ShapeKey = [*const u8; 2];

fn shape_key(Shape { labels, rest, .. }: &Shape) -> ShapeKey {
    [labels.as_ptr(), rest.as_ptr()]
}

impl Member {
    /// Returns the key of its shape; `None` if there was no room for it.
    pub fn shape(&self) -> Option<ShapeKey> {
        self.shape.as_ref().map(shape_key)
    }

    /// Returns its agents; `None` if only its metadata was read.
    pub fn agents(&self) -> Option<&[Agent]> {
        self.read.as_ref().map(|read| &*read.agents.0)
    }

    /// Returns what was decided on it when it was created, as far as that is known.
    pub fn decided(&self) -> &[Decided] {
        self.read.as_ref().map_or(&[], |read| &read.agents.1)
    }

    /// Returns the containers that send data.
    pub(crate) fn senders(&self) -> &[Sender] {
        self.read.as_ref().map_or(&[], |read| &*read.agents.2)
    }

    /// Returns since when it is Ready; `None` if it is not, or that is not known.
    pub(crate) fn ready_since(&self) -> Option<Timestamp> {
        let since = self.read.as_ref()?.ready_since;
        Timestamp::from_second(since.into()).ok().filter(|_| since > 0)
    }

    /// Returns its status; `None` if only its metadata was read.
    pub fn status(&self) -> Option<&PodStatus> {
        self.read.as_ref().map(|read| &*read.status)
    }
}

/// Messages name the pod, and change with each attempt: those of the pod that was read last stand for all.
fn shared_status(members: &mut [Member], status: PodStatus) -> Arc<PodStatus> {
    static WITHOUT_FAILURES: LazyLock<[Arc<PodStatus>; 2]> = LazyLock::new(|| {
        [false, true].map(|is_ready| Arc::new(PodStatus { is_ready, failures: Vec::new() }))
    });
    if status.failures.is_empty() {
        return Arc::clone(&WITHOUT_FAILURES[usize::from(status.is_ready)]);
    }
    let status = Arc::new(status);
    let reads = members.iter_mut().filter_map(|member| member.read.as_mut());
    for read in reads.filter(|read| read.status.is_like(&status)) {
        read.status = Arc::clone(&status);
    }
    status
}
