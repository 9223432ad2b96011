//! The owners of a pod, and the service's name.

use super::{
    pod::{OwnerReference, Pod},
    text::Text,
};

/// A kind of owner that may have an owner itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnerKind {
    /// `apps/v1` ReplicaSet.
    ReplicaSet,
    /// `batch/v1` Job.
    Job,
}

/// A lookup of the owners of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OwnerQuery<'a> {
    /// Kind of the owner.
    pub kind: OwnerKind,
    /// Namespace of pod and owner.
    pub namespace: &'a str,
    /// Name of the owner.
    pub name: &'a str,
    /// UID of the owner in the pod's owner reference.
    pub uid: &'a str,
}

/// One owner of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Kind, as in the reference.
    pub kind: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Whether it is the controller.
    pub controller: bool,
}

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It exists and has these owners, if any.
    Known(Vec<Owner>),
    /// It does not exist, or not yet.
    Absent,
    /// The lookup timed out.
    Unknown,
}

/// Results of lookups; without I/O, from earlier lookups only.
pub trait Owners {
    /// The result of a lookup.
    fn look_up(&self, query: OwnerQuery<'_>) -> Lookup;
}

/// The owners as resource attributes, and the candidates for the service's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Attributes such as `k8s.deployment.name`, each once.
    pub attributes: Vec<(&'static str, String)>,
    /// The controller of the ReplicaSet, if it is not a Deployment (D27).
    pub controller: Option<String>,
    /// Owners with a lookup that timed out.
    pub unlearned: Vec<String>,
    /// How many owner references were not looked up, since there are more than [`MOST_LOOKUPS`].
    pub not_looked_up: usize,
}

/// The label by which a Deployment distinguishes its ReplicaSets.
const DEPLOYMENT_HASH: &str = "pod-template-hash";

/// The same label of an Argo Rollout.
const ROLLOUT_HASH: &str = "rollouts-pod-template-hash";

/// How many owners are looked up for one pod, each by a request to the API server. With its namespace, a pod
/// causes four requests at most.
pub const MOST_LOOKUPS: usize = 3;

/// How many owners of an owner are kept.
const MOST_OWNERS: usize = 4;

/// No object has a longer name.
const LONGEST_NAME: usize = 253;

/// The owners that have to be looked up: the controller first, then the others in their order, up to
/// [`MOST_LOOKUPS`].
///
/// The Deployment of a ReplicaSet follows from the ReplicaSet's name and the
/// pod's `pod-template-hash`, except for its UID.
pub fn queries<'p>(pod: &'p Pod<'p>, namespace: &'p str, with_uids: bool) -> Vec<OwnerQuery<'p>> {
    let those = |controllers: bool| {
        let references = pod.metadata.owner_references.iter();
        references.filter(move |reference| (reference.controller == Some(true)) == controllers)
    };
    let mut queries = Vec::new();
    for reference in those(true).chain(those(false)) {
        if let Some(query) = needed(pod, namespace, reference, with_uids)
            && !queries.contains(&query)
        {
            queries.push(query);
        }
        if queries.len() == MOST_LOOKUPS {
            break;
        }
    }
    queries
}

/// The owners of an owner that are kept: the controller and the first others, so that what is cached is small.
pub fn kept(owners: impl IntoIterator<Item = Owner>) -> Vec<Owner> {
    let is_possible =
        |owner: &Owner| [&owner.kind, &owner.name, &owner.uid].iter().all(|text| text.len() <= LONGEST_NAME);
    let mut kept: Vec<Owner> = Vec::new();
    for owner in owners.into_iter().filter(is_possible) {
        if kept.len() < MOST_OWNERS {
            kept.push(owner);
        } else if owner.controller && !kept.iter().any(|kept| kept.controller) {
            kept[MOST_OWNERS - 1] = owner;
        }
    }
    kept
}

/// The owner chain of a pod.
pub fn chain(pod: &Pod<'_>, namespace: &str, with_uids: bool, owners: &dyn Owners) -> Workload {
    let mut workload = Workload::default();
    let queries = queries(pod, namespace, with_uids);
    for reference in pod.metadata.owner_references.iter() {
        workload.add(&reference.kind, &reference.name, &reference.uid, with_uids);
        // Only templates have this owner; that of their pods is a ReplicaSet of the Rollout.
        if &*reference.kind == "Rollout" && reference.controller == Some(true) {
            workload.controller = Some(reference.name.to_string());
        }
        let Some(kind) = queried_kind(&reference.kind) else {
            continue;
        };
        let known = match needed(pod, namespace, reference, with_uids) {
            Some(query) if !queries.contains(&query) => {
                // What its name says must not override what was looked up.
                workload.not_looked_up += 1;
                continue;
            }
            Some(query) => workload.learn(reference, owners.look_up(query)),
            None => owners.look_up(query(kind, namespace, reference)),
        };
        match (known, kind) {
            (Lookup::Known(parents), _) => workload.add_parents(&parents, kind, with_uids),
            (_, OwnerKind::ReplicaSet) => match derive(pod, &reference.name) {
                Some(Derived::Deployment(name)) => {
                    workload.add("Deployment", name, "", with_uids);
                }
                Some(Derived::Rollout(name)) => workload.controller = Some(name.to_owned()),
                None => {}
            },
            (Lookup::Unknown, OwnerKind::Job) => {
                if let Some(name) = cron_job_of(&reference.name) {
                    workload.add("CronJob", name, "", with_uids);
                }
            }
            (Lookup::Absent, OwnerKind::Job) => {}
        }
    }
    workload
}

impl Workload {
    /// The name of an owner by its attribute.
    pub fn attribute(&self, key: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| value.as_str())
    }

    /// Remembers that a lookup timed out.
    fn learn(&mut self, reference: &OwnerReference<'_>, known: Lookup) -> Lookup {
        if known == Lookup::Unknown {
            let owner = format!("{} {}", reference.kind, reference.name);
            if !self.unlearned.contains(&owner) {
                self.unlearned.push(owner);
            }
        }
        known
    }

    fn add_parents(&mut self, parents: &[Owner], of: OwnerKind, with_uids: bool) {
        for parent in parents {
            let known = self.add(&parent.kind, &parent.name, &parent.uid, with_uids);
            if !known && parent.controller && of == OwnerKind::ReplicaSet {
                self.controller = Some(parent.name.to_string());
            }
        }
    }

    /// Adds an owner. Returns false for a kind without an attribute.
    fn add(&mut self, kind: &str, name: &str, uid: &str, with_uids: bool) -> bool {
        let row = KINDS.iter().find(|row| row.0.eq_ignore_ascii_case(kind));
        let Some((_, name_key, uid_key)) = row else {
            return false;
        };
        self.set(name_key, name);
        if with_uids && !uid.is_empty() {
            self.set(uid_key, uid);
        }
        true
    }

    fn set(&mut self, key: &'static str, value: &str) {
        self.attributes.retain(|(name, _)| *name != key);
        self.attributes.push((key, value.to_owned()));
    }
}

/// Kinds of owners and their attributes, by the OpenTelemetry conventions for Kubernetes.
const KINDS: [(&str, &str, &str); 6] = [
    ("ReplicaSet", "k8s.replicaset.name", "k8s.replicaset.uid"),
    ("Deployment", "k8s.deployment.name", "k8s.deployment.uid"),
    ("StatefulSet", "k8s.statefulset.name", "k8s.statefulset.uid"),
    ("DaemonSet", "k8s.daemonset.name", "k8s.daemonset.uid"),
    ("Job", "k8s.job.name", "k8s.job.uid"),
    ("CronJob", "k8s.cronjob.name", "k8s.cronjob.uid"),
];

enum Derived<'a> {
    Deployment(&'a str),
    Rollout(&'a str),
}

fn derive<'a>(pod: &Pod<'_>, replica_set: &'a Text<'_>) -> Option<Derived<'a>> {
    let labels = &pod.metadata.labels;
    let without = |label| {
        let hash: &str = labels.get(label).filter(|hash| !hash.is_empty())?;
        let name = replica_set.strip_suffix(hash)?.strip_suffix('-')?;
        (!name.is_empty()).then_some(name)
    };
    let deployment = without(DEPLOYMENT_HASH).map(Derived::Deployment);
    deployment.or_else(|| without(ROLLOUT_HASH).map(Derived::Rollout))
}

/// A CronJob names its Jobs after itself and the scheduled minute.
fn cron_job_of(job: &str) -> Option<&str> {
    let (name, minute) = job.rsplit_once('-')?;
    let numeric = !minute.is_empty() && minute.bytes().all(|byte| byte.is_ascii_digit());
    (numeric && !name.is_empty()).then_some(name)
}

fn queried_kind(kind: &str) -> Option<OwnerKind> {
    if kind.eq_ignore_ascii_case("ReplicaSet") {
        Some(OwnerKind::ReplicaSet)
    } else if kind.eq_ignore_ascii_case("Job") {
        Some(OwnerKind::Job)
    } else {
        None
    }
}

/// The lookup of an owner, unless its owner follows from its name. A name that no object can have is never
/// looked up: it would become a part of the path of a request.
fn needed<'p>(
    pod: &Pod<'_>,
    namespace: &'p str,
    reference: &'p OwnerReference<'_>,
    with_uids: bool,
) -> Option<OwnerQuery<'p>> {
    let kind = queried_kind(&reference.kind)?;
    let derived = kind == OwnerKind::ReplicaSet && derive(pod, &reference.name).is_some();
    ((!derived || with_uids) && is_possible(&reference.name)).then(|| query(kind, namespace, reference))
}

/// Whether a ReplicaSet or a Job can have this name: a DNS subdomain.
fn is_possible(name: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= LONGEST_NAME
        && name.bytes().next().is_some_and(is_alphanumeric)
        && name.bytes().all(|byte| is_alphanumeric(byte) || byte == b'-' || byte == b'.')
}

fn query<'a>(kind: OwnerKind, namespace: &'a str, reference: &'a OwnerReference<'_>) -> OwnerQuery<'a> {
    OwnerQuery { kind, namespace, name: &reference.name, uid: &reference.uid }
}
