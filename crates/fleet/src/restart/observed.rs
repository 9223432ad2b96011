//! What is observed of Instrumentations and workloads.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use otel_webhook_inject::pause::Pause;
use serde_json::Value;

use super::{
    change::{Change, Consent, InvalidConsent},
    ledger::Wave,
};
use crate::{
    count::OldPod,
    failing::{is_given_up, waiting},
    pod::RunningPod,
    workload::Workload,
};

/// An Instrumentation, as far as restarts need it.
#[derive(Clone, Debug)]
pub struct Instrumentation {
    /// Its UID.
    pub uid: String,
    /// Its namespace.
    pub namespace: String,
    /// Its generation, which counts its changes.
    pub generation: i64,
    /// The value of its annotation that resumes a stopped restart.
    pub resume: Option<String>,
}

impl Instrumentation {
    /// Begins its restarts.
    pub(super) fn wave(&self) -> Wave {
        let mut wave =
            Wave { generation: self.generation, namespace: self.namespace.clone(), ..Wave::default() };
        wave.is_resumed(self.resume.as_deref());
        wave
    }
}

/// A workload with pods that have an agent or opt in.
#[derive(Clone, Debug)]
pub struct ObservedWorkload {
    /// The workload.
    pub workload: Workload,
    /// Whether and how it may be restarted.
    pub consent: Result<Consent, InvalidConsent>,
    /// UID of the Instrumentation that its outdated pods would get.
    pub instrumentation: Option<String>,
    /// The configuration that a new pod would get; `None` if it would get no agent.
    pub config: Option<String>,
    /// Its stale and missed pods, in the order in which they would be evicted.
    pub outdated: Vec<OldPod>,
    /// How many of them are missed.
    pub missed: usize,
    /// Whether one of them fails because of what injection added: the new configuration may mend it.
    pub is_failing: bool,
    /// The number of its unconfirmed pods.
    pub unconfirmed: usize,
    /// When the newest of its pods was created whose hash is of another version.
    pub unknown: Option<Timestamp>,
    /// What pauses injection into its new pods; `None` if nothing does.
    pub paused: Option<Pause>,
    /// Whether its kind and strategy allow a rollout.
    pub fit: Fit,
    /// Whether it is a StatefulSet that replaces a pod only when those before it are ready.
    pub is_ordered: bool,
    /// Its health.
    pub health: Health,
    /// The number of available pods.
    pub available: usize,
    /// When its newest pod was created.
    pub newest: Option<Timestamp>,
    /// Why the API server refused the last step, such as an eviction for a `PodDisruptionBudget`.
    pub refused: Option<String>,
    /// The change in its own annotation.
    pub record: Option<Change>,
}

/// Whether a workload can be restarted by its pod template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It can.
    Fits,
    /// Its kind is not one that is restarted, such as a Job.
    Kind,
    /// Another controller writes its template: `kind/name`.
    Controlled(String),
    /// A Deployment that ends all pods before it starts new ones.
    Recreate,
    /// Pods are replaced only when somebody deletes them.
    OnDelete,
    /// A StatefulSet whose partition keeps old pods.
    Partition,
    /// A Deployment that is paused.
    Paused,
}

/// The health of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Its last rollout is complete and all of its pods are available.
    Healthy,
    /// Its pods are being replaced, or not all are available.
    Progressing {
        /// When it last made progress.
        since: Timestamp,
        /// Its `minReadySeconds`.
        min_ready: SignedDuration,
    },
    /// A pod cannot start.
    Failing(FailingPod),
}

/// A pod that cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingPod {
    /// The pod.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// When it was created.
    pub created: Timestamp,
    /// Its container's reason, such as `CrashLoopBackOff`.
    pub reason: String,
}

/// What is known of the pods of a workload that is not healthy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unwell {
    /// The youngest that cannot start.
    pub failing: Option<FailingPod>,
    /// The nodes of a `DaemonSet` that do not run its pods, since they are not ready. It keeps those pods as long as the
    /// nodes exist.
    lost: BTreeSet<String>,
}

impl Unwell {
    /// Adds some of the pods of a workload, which are whole objects.
    pub fn add<'p>(
        &mut self,
        workload: &Workload,
        pods: impl Iterator<Item = &'p Value> + Clone,
        now: Timestamp,
    ) {
        // The labels of a workload may be those of the pods of another one.
        let is_own = |pod: &&Value| {
            let running = RunningPod::of_metadata(&pod["metadata"]);
            running.is_some_and(|running| running.workload == *workload)
        };
        let own = pods.filter(is_own);
        let failing = own.clone().filter_map(read).chain(self.failing.take());
        self.failing = failing.max_by_key(|pod| pod.created);
        if workload.kind == "DaemonSet" {
            self.lost.extend(own.filter_map(|pod| lost_node(pod, now)));
        }
    }

    /// The number of nodes that do not run its pods.
    pub fn lost(&self) -> usize {
        self.lost.len()
    }
}

/// How long a kubelet may take to accept a pod that is bound to its node.
const ACCEPTED: SignedDuration = SignedDuration::from_mins(1);

/// Returns the node of a pod if it does not run the pod since it is not ready.
fn lost_node(pod: &Value, now: Timestamp) -> Option<String> {
    let node = pod["spec"]["nodeName"].as_str()?;
    let condition = |kind: &str| {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        { conditions }.find(|condition| condition["type"] == kind).map(|condition| &condition["status"])
    };
    // Where a node is not ready, the control plane changes the condition Ready of its pods and no other one.
    let is_left = condition("Ready").is_some_and(|ready| ready == "False")
        && condition("ContainersReady").is_some_and(|ready| ready == "True")
        && pod["spec"]["readinessGates"].as_array().is_none_or(Vec::is_empty);
    let is_accepted = !pod["status"]["startTime"].is_null();
    let created: Timestamp = pod["metadata"]["creationTimestamp"].as_str()?.parse().ok()?;
    let is_ignored = !is_accepted && now.duration_since(created) > ACCEPTED;
    (is_left || is_ignored).then(|| node.to_owned())
}

fn read(pod: &Value) -> Option<FailingPod> {
    let metadata = &pod["metadata"];
    if !metadata["deletionTimestamp"].is_null() {
        return None;
    }
    let statuses = ["initContainerStatuses", "containerStatuses"].into_iter();
    let statuses = statuses.flat_map(|field| pod["status"][field].as_array().into_iter().flatten());
    let reason = { statuses }.filter_map(waiting).find(|reason| is_given_up(reason))?;
    let created: Timestamp = metadata["creationTimestamp"].as_str()?.parse().ok()?;
    Some(FailingPod {
        name: metadata["name"].as_str()?.to_owned(),
        uid: metadata["uid"].as_str()?.to_owned(),
        created,
        reason: reason.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_youngest_pod_that_a_kubelet_gave_up_is_found() {
        let pod = |name: &str, second: u8, list: &str, reason: &str| {
            json!({
                "metadata": {
                    "name": name, "namespace": "shop", "uid": name,
                    "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
                    "ownerReferences": [{
                        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db", "controller": true,
                    }],
                },
                "status": {list: [{"state": {"running": {}}}, {"state": {"waiting": {"reason": reason}}}]},
            })
        };
        let pods = [
            pod("old", 1, "containerStatuses", "CrashLoopBackOff"),
            pod("new", 2, "initContainerStatuses", "ImagePullBackOff"),
            pod("slow", 3, "containerStatuses", "ContainerCreating"),
            pod("once", 4, "containerStatuses", "ErrImagePull"),
        ];
        let (workload, other) =
            (Workload::new("StatefulSet", "shop", "db"), Workload::new("StatefulSet", "shop", "a"));
        let failing = |workload: &Workload, pods: &[Value]| {
            let mut unwell = Unwell::default();
            unwell.add(workload, pods.iter(), Timestamp::UNIX_EPOCH);
            assert_eq!(unwell.lost(), 0);
            unwell.failing
        };
        assert_eq!(failing(&other, &pods), None, "the pods of another workload have its labels");
        let of_own = |pods: &[Value]| failing(&workload, pods);
        let found = of_own(&pods).expect("one fails");
        assert_eq!((&*found.name, &*found.reason), ("new", "ImagePullBackOff"));
        assert_eq!(of_own(&pods[2..]), None);
        let mut ending = pods[1].clone();
        ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
        assert_eq!(of_own(&[ending]), None);
    }

    #[test]
    fn nodes_that_do_not_run_the_pods_of_a_daemon_set_are_found() {
        let pod = |node: &str, kind: &str, ready: &str, containers_ready: &str, started: Option<&str>| {
            json!({
                "metadata": {
                    "name": node, "namespace": "shop", "uid": node, "creationTimestamp": "2026-01-01T00:00:00Z",
                    "ownerReferences": [
                        {"apiVersion": "apps/v1", "kind": kind, "name": "log", "uid": "log", "controller": true},
                    ],
                },
                "spec": {"nodeName": node},
                "status": {"startTime": started, "conditions": [
                    {"type": "Ready", "status": ready}, {"type": "ContainersReady", "status": containers_ready},
                ]},
            })
        };
        let started = Some("2026-01-01T00:00:01Z");
        let mut gated = pod("gated", "DaemonSet", "False", "True", started);
        gated["spec"]["readinessGates"] = json!([{"conditionType": "example.com/ready"}]);
        let mut pods = vec![
            pod("ready", "DaemonSet", "True", "True", started),
            pod("starting", "DaemonSet", "False", "False", started),
            gated,
            pod("other", "StatefulSet", "False", "True", started),
            pod("left", "DaemonSet", "False", "True", started),
            pod("left", "DaemonSet", "False", "True", started),
            pod("ignored", "DaemonSet", "False", "False", None),
        ];
        let lost = |kind: &str, pods: &[Value], second: i64| {
            let mut unwell = Unwell::default();
            let now = Timestamp::from_second(1_767_225_600 + second).expect("a time");
            pods.chunks(2).for_each(|page| unwell.add(&Workload::new(kind, "shop", "log"), page.iter(), now));
            unwell.lost
        };
        assert_eq!(lost("DaemonSet", &pods, 120), ["ignored", "left"].map(str::to_owned).into());
        assert_eq!(lost("DaemonSet", &pods, 30), ["left".to_owned()].into(), "a kubelet may be slow");
        assert_eq!(lost("StatefulSet", &pods, 120), BTreeSet::new(), "its pods are replaced elsewhere");
        pods.truncate(4);
        assert_eq!(lost("DaemonSet", &pods, 120), BTreeSet::new());
    }
}
