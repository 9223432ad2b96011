//! Names of workloads and Instrumentations.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A workload: what a restart is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Workload {
    /// Its namespace.
    pub namespace: String,
    /// Its kind, such as `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl Workload {
    /// Names a workload.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
    }

    /// Returns the command that recreates its pods; `None` if there is none for its kind.
    pub fn restart_command(&self) -> Option<String> {
        let Self { namespace, name, .. } = self;
        match &*self.kind {
            "Deployment" | "StatefulSet" | "DaemonSet" => {
                Some(format!("kubectl rollout restart {} -n {namespace}", self.argument()))
            }
            "Rollout" => Some(format!("kubectl argo rollouts restart {name} -n {namespace}")),
            _ => None,
        }
    }

    /// Says what brings its pods up to date where no command does it.
    pub fn by_hand(&self) -> &'static str {
        match &*self.kind {
            "Job" | "CronJob" => "pods of a run are not replaced; the next run gets new pods",
            "Pod" => "it has no controller; delete it and create it again",
            _ => "delete its pods one after another, so that their controller creates them again",
        }
    }

    /// Kind and name as kubectl takes them, such as `deployment/order`.
    pub fn argument(&self) -> String {
        format!("{}/{}", self.kind.to_lowercase(), self.name)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}
