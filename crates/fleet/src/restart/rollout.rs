//! A Deployment, a StatefulSet or a DaemonSet, reduced to what restarts depend on.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    change::{Change, Consent, annotations},
    observed::{Fit, Health, ObservedWorkload, Unwell},
};
use crate::{count::WorkloadPods, workload::Workload};

/// A workload with a pod template.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    /// The version that a patch has to meet.
    pub resource_version: String,
    /// The selector of its pods, as text.
    pub selector: String,
    /// How far its last rollout is.
    pub progress: Progress,
    consent: Option<String>,
    record: Option<Change>,
    fit: Fit,
    is_ordered: bool,
    min_ready: SignedDuration,
}

/// How far a rollout is. Numbers of pods, as the controller of the workload tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether the controller has seen the present template.
    is_observed: bool,
    desired: i64,
    /// All, those of former templates included.
    present: i64,
    updated: i64,
    available: i64,
}

impl Rollout {
    /// Reads an object of a kind. `None` for other kinds.
    pub fn read(kind: &str, object: &Value) -> Option<Self> {
        let (metadata, spec) = (&object["metadata"], &object["spec"]);
        let annotation = |key: &str| metadata["annotations"][key].as_str();
        let fit = match kind {
            "Deployment" => deployment(spec),
            "StatefulSet" => stateful_set(spec),
            "DaemonSet" => daemon_set(spec),
            _ => return None,
        };
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let controller = { owners }.find(|owner| owner["controller"] == true).map(name_of_owner);
        Some(Self {
            resource_version: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
            selector: selector(&spec["selector"]),
            progress: Progress::read(kind, object),
            consent: annotation(annotations::RESTART).map(str::to_owned),
            record: annotation(annotations::RECORD).and_then(Change::read),
            fit: controller.map_or(fit, Fit::Controlled),
            is_ordered: kind == "StatefulSet" && spec["podManagementPolicy"] != "Parallel",
            min_ready: SignedDuration::from_secs(spec["minReadySeconds"].as_i64().unwrap_or(0)),
        })
    }

    /// Whether its last rollout is complete and all pods are available. Where nothing is rolled out, only the latter.
    pub fn is_healthy(&self) -> bool {
        self.is_healthy_without(0)
    }

    /// Likewise without as many pods, which are on nodes that are not ready. A `DaemonSet` has no others for them.
    fn is_healthy_without(&self, lost: usize) -> bool {
        let Progress { is_observed, desired, present, updated, available } = self.progress;
        let lost = i64::try_from(lost).unwrap_or(i64::MAX).min(desired);
        let is_complete = updated >= desired - lost && present <= desired;
        is_observed && available >= desired - lost && (is_complete || self.fit != Fit::Fits)
    }

    /// Returns its health. `since` is when it last made progress, `unwell` what is known of its pods.
    pub fn health(&self, since: Timestamp, unwell: Unwell) -> Health {
        match unwell.failing {
            _ if self.is_healthy_without(unwell.lost()) => Health::Healthy,
            Some(pod) => Health::Failing(pod),
            None => Health::Progressing { since, min_ready: self.min_ready },
        }
    }
}

/// What applies to a workload by the annotations of others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Around<'a> {
    /// The consent of its namespace.
    pub namespace: Option<&'a str>,
    /// The Instrumentation of its outdated pods: its UID, and its consent if it is in the same namespace.
    pub instrumentation: Option<(&'a str, Option<&'a str>)>,
}

impl ObservedWorkload {
    /// Puts together what is known of a workload. `rollout` is `None` for a kind that is not restarted.
    pub fn of(
        pods: WorkloadPods,
        rollout: Option<&Rollout>,
        around: Around<'_>,
        health: Health,
        refused: Option<String>,
    ) -> Self {
        let own = rollout.and_then(|rollout| rollout.consent.as_deref());
        let (uid, consent) = around.instrumentation.unzip();
        Self {
            workload: pods.workload,
            consent: Consent::of(own, around.namespace, consent.flatten()),
            instrumentation: uid.map(str::to_owned),
            config: pods.config,
            is_failing: pods.failing > 0,
            outdated: pods.outdated,
            missed: pods.missed,
            unconfirmed: pods.unconfirmed,
            unknown: pods.unknown,
            paused: pods.paused,
            fit: rollout.map_or(Fit::Kind, |rollout| rollout.fit.clone()),
            is_ordered: rollout.is_some_and(|rollout| rollout.is_ordered),
            health,
            available: rollout.map_or(0, |rollout| usize::try_from(rollout.progress.available).unwrap_or(0)),
            newest: pods.newest,
            refused,
            record: rollout.and_then(|rollout| rollout.record.clone()),
        }
    }

    /// A workload without pods, such as one whose only pod is being replaced.
    pub fn without_pods(workload: Workload) -> WorkloadPods {
        WorkloadPods {
            workload,
            instrumentation: None,
            config: None,
            instrumentations: Vec::new(),
            outdated: Vec::new(),
            missed: 0,
            failing: 0,
            unconfirmed: 0,
            unknown: None,
            paused: None,
            newest: None,
        }
    }
}

impl Progress {
    fn read(kind: &str, object: &Value) -> Self {
        let status = &object["status"];
        let count = |field: &str| status[field].as_i64().unwrap_or(0);
        let desired = object["spec"]["replicas"].as_i64().unwrap_or(1);
        let is_observed =
            count("observedGeneration") >= object["metadata"]["generation"].as_i64().unwrap_or(0);
        if kind == "DaemonSet" {
            let desired = count("desiredNumberScheduled");
            return Self {
                is_observed,
                desired,
                present: desired,
                updated: count("updatedNumberScheduled"),
                available: count("numberAvailable"),
            };
        }
        // A StatefulSet whose rollout is complete has no separate update revision, and no updated pods.
        let is_current = kind == "StatefulSet" && status["currentRevision"] == status["updateRevision"];
        Self {
            is_observed,
            desired,
            present: count("replicas"),
            updated: if is_current { count("currentReplicas") } else { count("updatedReplicas") },
            available: count("availableReplicas"),
        }
    }
}

fn deployment(spec: &Value) -> Fit {
    if spec["strategy"]["type"] == "Recreate" {
        Fit::Recreate
    } else if spec["paused"] == true {
        Fit::Paused
    } else {
        Fit::Fits
    }
}

fn stateful_set(spec: &Value) -> Fit {
    let strategy = &spec["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        Fit::OnDelete
    } else if strategy["rollingUpdate"]["partition"].as_i64().unwrap_or(0) > 0 {
        Fit::Partition
    } else {
        Fit::Fits
    }
}

fn daemon_set(spec: &Value) -> Fit {
    if spec["updateStrategy"]["type"] == "OnDelete" { Fit::OnDelete } else { Fit::Fits }
}

fn name_of_owner(owner: &Value) -> String {
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    format!("{} {}", text("kind"), text("name"))
}

/// Returns a label selector as the API server takes it in a request.
fn selector(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    let expressions = expressions.map(|expression| {
        let key = expression["key"].as_str().unwrap_or_default();
        let values = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let values = values.collect::<Vec<_>>().join(",");
        match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        }
    });
    labels.chain(expressions).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(kind: &str, spec: &Value, status: &Value) -> Rollout {
        let object =
            json!({"metadata": {"generation": 2, "resourceVersion": "7"}, "spec": spec, "status": status});
        Rollout::read(kind, &object).expect("a kind that is restarted")
    }

    #[test]
    fn what_keeps_a_template_from_being_rolled_out_is_found() {
        let replicas = json!({"observedGeneration": 2});
        for (kind, spec, expected) in [
            ("Deployment", json!({}), Fit::Fits),
            ("Deployment", json!({"strategy": {"type": "Recreate"}}), Fit::Recreate),
            ("Deployment", json!({"paused": true}), Fit::Paused),
            ("StatefulSet", json!({"updateStrategy": {"type": "RollingUpdate"}}), Fit::Fits),
            ("StatefulSet", json!({"updateStrategy": {"type": "OnDelete"}}), Fit::OnDelete),
            (
                "StatefulSet",
                json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}),
                Fit::Partition,
            ),
            ("DaemonSet", json!({}), Fit::Fits),
            ("DaemonSet", json!({"updateStrategy": {"type": "OnDelete"}}), Fit::OnDelete),
        ] {
            assert_eq!(read(kind, &spec, &replicas).fit, expected, "{kind}: {spec}");
        }
        let owner = json!([{"kind": "Kafka", "name": "events", "controller": true}]);
        let object = json!({"metadata": {"ownerReferences": owner}});
        let controlled = Rollout::read("StatefulSet", &object).expect("a StatefulSet");
        assert_eq!(controlled.fit, Fit::Controlled("Kafka events".to_owned()));
        assert_eq!(Rollout::read("Job", &object), None);
    }

    #[test]
    fn a_workload_is_healthy_once_its_rollout_is_complete_and_its_pods_are_available() {
        let three = json!({"replicas": 3});
        for (kind, status, expected) in [
            (
                "Deployment",
                json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}),
                true,
            ),
            (
                "Deployment",
                json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}),
                false,
            ),
            (
                "Deployment",
                json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 3, "availableReplicas": 3}),
                false,
            ),
            (
                "Deployment",
                json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 2}),
                false,
            ),
            (
                "StatefulSet",
                json!({"observedGeneration": 2, "replicas": 3, "currentReplicas": 3, "availableReplicas": 3,
                    "currentRevision": "a", "updateRevision": "a"}),
                true,
            ),
            (
                "StatefulSet",
                json!({"observedGeneration": 2, "replicas": 3, "currentReplicas": 1, "updatedReplicas": 2,
                    "availableReplicas": 3, "currentRevision": "a", "updateRevision": "b"}),
                false,
            ),
            (
                "DaemonSet",
                json!({"observedGeneration": 2, "desiredNumberScheduled": 5, "updatedNumberScheduled": 5,
                    "numberAvailable": 5}),
                true,
            ),
            (
                "DaemonSet",
                json!({"observedGeneration": 2, "desiredNumberScheduled": 5, "updatedNumberScheduled": 4,
                    "numberAvailable": 5}),
                false,
            ),
        ] {
            assert_eq!(read(kind, &three, &status).is_healthy(), expected, "{kind}: {status}");
        }
        let status = json!({"observedGeneration": 2, "desiredNumberScheduled": 5, "updatedNumberScheduled": 4,
            "numberAvailable": 4});
        let daemon_set = read("DaemonSet", &three, &status);
        assert!(!daemon_set.is_healthy_without(0) && daemon_set.is_healthy_without(1));
        // Its pods are evicted; the rollout of its template stands still on purpose.
        let paused = json!({"replicas": 1, "paused": true});
        let status = json!({"observedGeneration": 2, "replicas": 1, "availableReplicas": 1});
        assert!(read("Deployment", &paused, &status).is_healthy());
    }

    #[test]
    fn selectors_are_written_as_requests_have_them() {
        let spec = json!({"selector": {
            "matchLabels": {"app": "order", "tier": "web"},
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["a", "b"]},
                {"key": "canary", "operator": "DoesNotExist"},
            ],
        }});
        let status = json!({});
        assert_eq!(read("Deployment", &spec, &status).selector, "app=order,tier=web,zone in (a,b),!canary");
    }

    #[test]
    fn consent_and_record_are_those_of_the_annotations() {
        let change = Change {
            instrumentation: "uid".to_owned(),
            generation: 3,
            config: "java=v1:0".to_owned(),
            attempt: 1,
        };
        let object = json!({"metadata": {"annotations": {
            (annotations::RESTART): "evict", (annotations::RECORD): change.write(),
        }}});
        let rollout = Rollout::read("Deployment", &object).expect("a Deployment");
        let pods = ObservedWorkload::without_pods(Workload::new("Deployment", "shop", "order"));
        let around = Around { namespace: Some("rollout"), instrumentation: Some(("uid", None)) };
        let seen = ObservedWorkload::of(pods.clone(), Some(&rollout), around, Health::Healthy, None);
        assert_eq!((seen.consent, seen.record), (Ok(Consent::Evict), Some(change)));
        let other = ObservedWorkload::of(pods, None, around, Health::Healthy, None);
        assert_eq!((other.consent, other.fit), (Ok(Consent::Rollout), Fit::Kind));
    }
}
