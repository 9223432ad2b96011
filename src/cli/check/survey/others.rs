//! Workloads of kinds that only the owner references of their pods name.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::{
    look,
    rows::{Next, Surveyed},
};
use crate::cli::cluster::{known::Known, owners};
use crate::subject::Subject;

/// The kinds, and what shows the templates of their workloads if they cannot be listed.
#[derive(Default)]
pub struct Others {
    /// Version and kind.
    pub kinds: BTreeSet<(String, String)>,
    stand_ins: HashMap<Subject, StandIn>,
}

/// Something that shows the template of a workload.
pub enum StandIn {
    /// A pod.
    Pod(Box<Surveyed>),
    /// A ReplicaSet with this name.
    ReplicaSet(String),
}

impl Others {
    /// Keeps what the first pod of a workload shows.
    pub fn keep(&mut self, known: &Known, pod: Value, subject: Subject, is_injected: bool) {
        let stand_in = match owners::replica_set(&pod) {
            Some(name) => Some(StandIn::ReplicaSet(name)),
            None => {
                by_pod(known, pod, &subject, is_injected).map(|surveyed| StandIn::Pod(Box::new(surveyed)))
            }
        };
        self.stand_ins.extend(stand_in.map(|stand_in| (subject, stand_in)));
    }

    /// Drops the stand-in of a workload that was listed.
    pub fn forget(&mut self, subject: &Subject) {
        self.stand_ins.remove(subject);
    }

    /// Takes the stand-ins of the workloads that were not listed.
    pub fn take(&mut self) -> HashMap<Subject, StandIn> {
        std::mem::take(&mut self.stand_ins)
    }
}

/// Pods of another controller show its template as long as they are not injected.
fn by_pod(known: &Known, pod: Value, subject: &Subject, hides_template: bool) -> Option<Surveyed> {
    let mut surveyed = look::at(known, pod, subject.clone())?;
    if hides_template {
        surveyed.next = Next::Unknown;
        surveyed.unsure.clear();
    }
    Some(surveyed)
}
