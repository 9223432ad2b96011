//! A look back at all that happened: what the webhook asked the API server
//! for, and what that has to say about the webhook.

use std::collections::BTreeSet;

use otel_webhook_testkit::until::{poll, until};
use serde_json::{Value, json};

use crate::audit;
use crate::cluster::{Cluster, java};
use crate::registration::ROLES;
use crate::replicas::{self, HOME, Replicas, SECRET};

/// The webhook was never refused, asked for nothing beyond its own rules, and has no rule that it does not use.
pub fn roles(cluster: &Cluster) {
    let namespace = "roles";
    cluster.instrumented_namespace(namespace);
    for (number, (version, kind)) in [("apps/v1", "ReplicaSet"), ("batch/v1", "Job")].iter().enumerate() {
        let mut pod = java(&format!("of-somebody-{number}"));
        let uid = format!("00000000-0000-4000-8000-00000000000{number}");
        let owner =
            json!({"apiVersion": version, "kind": kind, "name": "gone", "uid": uid, "controller": true});
        pod["metadata"]["ownerReferences"] = json!([owner]);
        cluster.dry_run(namespace, &pod);
    }
    // One that the watch will never bring.
    cluster.webhook.review(&json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "of-nowhere", "operation": "CREATE", "namespace": "nowhere",
            "resource": {"group": "", "version": "v1", "resource": "pods"}, "object": java("pod"),
        },
    }));
    let rules: Vec<Value> = serde_saphyr::from_multiple(ROLES).expect("YAML");
    check(cluster, audit::ACCOUNT, &audit::granted(&rules), &BTreeSet::new());
}

/// The same for managed certificates, with nothing but the roles that the program prints.
pub fn managed_roles(cluster: &Cluster) {
    let replicas = Replicas::started(cluster, "managed-roles", &[]);
    let damage = json!({"data": {"tls.key": ""}}).to_string();
    let args = ["patch", "secret", SECRET, "--namespace", HOME, "--patch", &damage];
    cluster.run(&args);
    until("the Secret is mended", || {
        let secret = replicas.secret()?;
        (secret["data"]["tls.key"] != "").then_some(())
    });
    let rules = replicas::roles();
    // What is for the owners of pods is the same in every mode, and looked at there.
    let elsewhere = ["get namespaces", "get replicasets", "get jobs"].map(str::to_owned);
    check(cluster, replicas::ACCOUNT, &audit::granted(&rules), &elsewhere.into());
}

/// `elsewhere` need not be used.
fn check(cluster: &Cluster, account: &str, granted: &BTreeSet<String>, elsewhere: &BTreeSet<String>) {
    let asked = || audit::asked(cluster, account);
    let is_used = || granted.difference(&asked()).all(|rule| elsewhere.contains(rule)).then_some(());
    let all_used = poll(is_used).is_some();
    let asked = asked();
    let beyond: Vec<_> = asked.difference(granted).collect();
    assert!(beyond.is_empty(), "asked for without its own rule: {beyond:?}");
    let unused: Vec<_> = granted.difference(&asked).filter(|rule| !elsewhere.contains(*rule)).collect();
    assert!(all_used, "granted and not used: {unused:?}");
}

/// The API server warns in its log of every answer that it cannot use.
pub fn complaints(cluster: &Cluster) {
    let log = cluster.plane.api_server_log();
    let ours = log.iter().filter(|line| line.contains("pods.otel-webhook.io"));
    // It is right where the webhook was stopped on purpose, or hung for ten pods: two lines for each.
    let (late, others): (Vec<_>, Vec<_>) = ours.partition(|line| line.contains("context deadline exceeded"));
    assert!(late.len() <= 20, "{} of them, such as {}", late.len(), late[0]);
    let complaints: Vec<_> = others.iter().filter(|line| !line.contains("connection refused")).collect();
    assert!(complaints.is_empty(), "{} of them, such as {}", complaints.len(), complaints[0]);
}
