//! Whose pod it is, as far as the API server has to be asked.

use otel_webhook_testkit::cluster::{
    created::Created,
    manifests::{deployment, object, template, workload},
};
use serde_json::json;

use crate::cluster::{Cluster, java};

pub fn cron_job(cluster: &Cluster) {
    let namespace = "cron-job";
    cluster.instrumented_namespace(namespace);
    let mut pods = template("nightly");
    pods["spec"]["restartPolicy"] = "Never".into();
    let job = json!({"spec": {"template": pods}});
    let spec = json!({"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": job});
    cluster.apply(&object("batch/v1", "CronJob", namespace, "nightly", &spec));
    // A name that says nothing of the CronJob.
    cluster.run(&["create", "job", "by-hand", "--from=cronjob/nightly", "--namespace", namespace]);
    let pod = injected(cluster, namespace, "nightly");
    assert_eq!(pod.attribute("app", "k8s.cronjob.name"), "nightly");
    assert_eq!(pod.attribute("app", "k8s.job.name"), "by-hand");
    assert_eq!(pod.variable("app", "OTEL_SERVICE_NAME"), "nightly");
}

pub fn stateful_set(cluster: &Cluster) {
    let namespace = "stateful-set";
    cluster.instrumented_namespace(namespace);
    let mut spec = workload(1, &template("ledger"));
    spec["serviceName"] = "ledger".into();
    cluster.apply(&object("apps/v1", "StatefulSet", namespace, "ledger", &spec));
    let pod = injected(cluster, namespace, "ledger");
    assert_eq!(pod.name(), "ledger-0");
    assert_eq!(pod.attribute("app", "k8s.statefulset.name"), "ledger");
    assert_eq!(pod.variable("app", "OTEL_SERVICE_NAME"), "ledger");
}

/// A ReplicaSet of another controller names the service after that one (D27).
pub fn rollout(cluster: &Cluster) {
    let namespace = "rollout";
    cluster.instrumented_namespace(namespace);
    let owner = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "checkout",
        "uid": "00000000-0000-4000-8000-000000000001", "controller": true, "blockOwnerDeletion": true,
    });
    // Only the look-up tells whose the first is; the name of the second does
    // so with the label of its pods.
    for (name, hash) in [("of-a-rollout", ""), ("payment-6d4f8", "6d4f8")] {
        let mut pods = template(name);
        pods["metadata"]["labels"]["rollouts-pod-template-hash"] = hash.into();
        let mut replica_set = object("apps/v1", "ReplicaSet", namespace, name, &workload(1, &pods));
        replica_set["metadata"]["ownerReferences"] = json!([owner]);
        cluster.apply(&replica_set);
    }
    for (label, service) in [("of-a-rollout", "checkout"), ("payment-6d4f8", "payment")] {
        let pod = injected(cluster, namespace, label);
        assert_eq!(pod.variable("app", "OTEL_SERVICE_NAME"), service);
        assert_eq!(pod.attribute("app", "k8s.replicaset.name"), label);
        assert_eq!(pod.attribute("app", "k8s.deployment.name"), "");
    }
}

pub fn uids(cluster: &Cluster) {
    let namespace = "uids";
    cluster.instrumented_namespace(namespace);
    let spec = json!({"resource": {"addK8sUIDAttributes": true}});
    cluster.instrumentation(namespace, "default", &spec);
    let with_uid = |pod: &Created| pod.variables("app").contains(&"OTEL_RESOURCE_ATTRIBUTES_POD_UID");
    cluster.create_when("UIDs are asked for", namespace, &java("first"), with_uid);
    cluster.apply(&deployment(namespace, "known", 1));
    let pod = injected(cluster, namespace, "known");
    for (kind, args) in [
        ("deployment", ["deployments", "--selector=app=known"]),
        ("replicaset", ["replicasets", "--selector=app=known"]),
    ] {
        let owner = &cluster.get(namespace, &args)["items"][0]["metadata"];
        assert_eq!(pod.attribute("app", &format!("k8s.{kind}.name")), owner["name"]);
        assert_eq!(pod.attribute("app", &format!("k8s.{kind}.uid")), owner["uid"]);
    }
}

/// The one pod with this label, which has to be injected.
fn injected(cluster: &Cluster, namespace: &str, label: &str) -> Created {
    let pod = cluster.pods_of(namespace, &format!("app={label}"), 1).remove(0);
    assert!(pod.is_injected(), "{}", pod.pod);
    pod
}
