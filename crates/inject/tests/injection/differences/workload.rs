//! Whose pod it is, and what its service is called.

use otel_webhook_inject::workload::{Lookup, OwnerQuery, Owners};
use otel_webhook_testkit::{
    objects::{asking, instrumentation},
    surroundings::{Injected, Surroundings, with},
};
use serde_json::{Value, json};

const SIDECAR: &str = "opentelemetry-auto-instrumentation";

/// Owners that nobody could look up in time.
struct Unknown;

impl Owners for Unknown {
    fn look_up(&self, _: OwnerQuery<'_>) -> Lookup {
        Lookup::Unknown
    }
}

fn owned_by(kind: &str, name: &str, labels: &Value) -> Value {
    let mut pod = asking(&["sdk"], json!({}));
    pod["metadata"]["labels"] = labels.clone();
    pod["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": kind, "name": name, "uid": "u", "controller": true}]);
    pod
}

fn service_name(injected: &Injected) -> &str {
    injected.value("app", "OTEL_SERVICE_NAME").expect("a name")
}

fn replica_set(owners: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-abc", "namespace": "shop", "ownerReferences": owners},
    })
}

#[test]
fn d10_an_owner_is_known_or_follows_from_the_name() {
    let replica_set_pod = owned_by("ReplicaSet", "web-abc", &json!({"pod-template-hash": "abc"}));
    assert_eq!(service_name(&with(json!({})).inject(&replica_set_pod)), "web");
    let known = Surroundings::new([instrumentation("inst", json!({})), replica_set(&json!([]))]);
    assert_eq!(service_name(&known.inject(&replica_set_pod)), "web-abc", "it is known to have none");
    let job_pod = owned_by("Job", "backup-29000000", &json!({}));
    let unknown = with(json!({})).inject_with(&job_pod, Some(&Unknown));
    assert_eq!(service_name(&unknown), "backup");
    assert_eq!(service_name(&with(json!({})).inject(&job_pod)), "backup-29000000", "it does not exist");
}

#[test]
fn d19_own_attributes_do_not_hide_the_owner() {
    let mut pod = owned_by("Deployment", "web", &json!({}));
    pod["spec"]["containers"][0]["env"] =
        json!([{"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "k8s.deployment.name=mine"}]);
    let injected = with(json!({})).inject(&pod);
    assert_eq!(service_name(&injected), "web");
    assert_eq!(injected.attribute("app", "k8s.deployment.name"), Some("mine"));
}

#[test]
fn d19_a_sidecar_has_what_it_would_have_alone() {
    let [alone, beside] = [vec!["go"], vec!["java", "go"]].map(|languages| {
        let own = json!({"env": [{"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "team=a"}]});
        let injected = with(json!({})).inject(&asking(&languages, own));
        injected.container(SIDECAR).expect("injected").clone()
    });
    assert_eq!(alone, beside);
}

#[test]
fn d27_the_service_is_named_after_the_controller_of_the_replica_set() {
    let label = json!({"rollouts-pod-template-hash": "abc"});
    let by_label = with(json!({})).inject(&owned_by("ReplicaSet", "web-abc", &label));
    assert_eq!(service_name(&by_label), "web");
    let rollout = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "shopfront",
        "uid": "r", "controller": true}]);
    let around = Surroundings::new([instrumentation("inst", json!({})), replica_set(&rollout)]);
    let by_lookup = around.inject(&owned_by("ReplicaSet", "web-abc", &json!({})));
    assert_eq!(service_name(&by_lookup), "shopfront");
}
