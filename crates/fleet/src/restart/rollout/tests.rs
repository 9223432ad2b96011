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
    let change = Change { instrumentation: "uid".to_owned(), generation: 3, config: "java=v1:0".to_owned() };
    let object = json!({"metadata": {"annotations": {
        (annotations::RESTART): "evict", (annotations::RECORD): change.write(),
    }}});
    let rollout = Rollout::read("Deployment", &object).expect("a Deployment");
    let pods = Seen::without_pods(Workload::new("Deployment", "shop", "order"));
    let around = Around { namespace: Some("rollout"), instrumentation: Some(("uid", None)) };
    let seen = Seen::of(pods.clone(), Some(&rollout), around, Health::Healthy, None);
    assert_eq!((seen.consent, seen.record), (Ok(Consent::Evict), Some(change)));
    let other = Seen::of(pods, None, around, Health::Healthy, None);
    assert_eq!((other.consent, other.fit), (Ok(Consent::Rollout), Fit::Kind));
}
