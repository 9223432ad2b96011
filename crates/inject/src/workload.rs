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
}

/// The label by which a Deployment distinguishes its ReplicaSets.
const DEPLOYMENT_HASH: &str = "pod-template-hash";

/// The same label of an Argo Rollout.
const ROLLOUT_HASH: &str = "rollouts-pod-template-hash";

/// The maximum number of owners that are looked up for a pod. Pods of controllers have one.
pub const MOST_LOOKUPS: usize = 4;

/// The owners that have to be looked up.
///
/// The Deployment of a ReplicaSet follows from the ReplicaSet's name and the
/// pod's `pod-template-hash`, except for its UID.
pub fn queries<'p>(pod: &'p Pod<'p>, namespace: &'p str, with_uids: bool) -> Vec<OwnerQuery<'p>> {
    let references = &pod.metadata.owner_references;
    let queried = queried(pod, with_uids).into_iter().filter_map(|index| {
        let reference = &references[index];
        Some(query(queried_kind(&reference.kind)?, namespace, reference))
    });
    queried.collect()
}

/// The indexes of the owner references that are looked up: at most [`MOST_LOOKUPS`], the controller first.
/// The attributes of others are derived from their names.
fn queried(pod: &Pod<'_>, with_uids: bool) -> Vec<usize> {
    let references = || pod.metadata.owner_references.iter().enumerate();
    let is_queried = |reference: &OwnerReference<'_>| match queried_kind(&reference.kind) {
        Some(OwnerKind::ReplicaSet) => with_uids || derive(pod, &reference.name).is_none(),
        Some(OwnerKind::Job) => true,
        None => false,
    };
    let is_controller = |reference: &OwnerReference<'_>| reference.controller == Some(true);
    let controllers = references().filter(|(_, one)| is_controller(one));
    let all = controllers.chain(references().filter(|(_, one)| !is_controller(one)));
    all.filter(|(_, one)| is_queried(one)).map(|(index, _)| index).take(MOST_LOOKUPS).collect()
}

/// The owner chain of a pod.
pub fn chain(pod: &Pod<'_>, namespace: &str, with_uids: bool, owners: &dyn Owners) -> Workload {
    let mut workload = Workload::default();
    let queried = queried(pod, with_uids);
    for (index, reference) in pod.metadata.owner_references.iter().enumerate() {
        workload.add(&reference.kind, &reference.name, &reference.uid, with_uids);
        let Some(kind) = queried_kind(&reference.kind) else {
            continue;
        };
        let known = owners.look_up(query(kind, namespace, reference));
        if known == Lookup::Unknown && queried.contains(&index) {
            workload.unlearned.push(format!("{} {}", reference.kind, reference.name));
        }
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

fn query<'a>(kind: OwnerKind, namespace: &'a str, reference: &'a OwnerReference<'_>) -> OwnerQuery<'a> {
    OwnerQuery { kind, namespace, name: &reference.name, uid: &reference.uid }
}
