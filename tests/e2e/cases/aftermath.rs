//! A look back at all that happened: what the webhook asked the API server
//! for, and what that has to say about the webhook.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::audit;
use crate::cluster::Cluster;
use crate::registration::ROLES;

const ACCOUNT: &str = "system:serviceaccount:otel-webhook:otel-webhook";

/// The webhook was never refused, and asked for nothing beyond its own rules.
pub fn roles(cluster: &Cluster) {
    let entries: Vec<_> =
        audit::entries(cluster).into_iter().filter(|entry| entry["user"]["username"] == ACCOUNT).collect();
    assert!(!entries.is_empty(), "it did not ask for anything: was it another account?");
    for entry in &entries {
        let code = &entry["responseStatus"]["code"];
        assert!(code != 401 && code != 403, "it was refused: {entry}");
    }
    let asked: BTreeSet<String> = entries.iter().map(asked_for).collect();
    let granted = granted();
    let beyond: Vec<_> = asked.difference(&granted).collect();
    assert!(beyond.is_empty(), "asked for without a rule of its own: {beyond:?}");
    for needed in ["watch instrumentations", "watch namespaces"] {
        assert!(asked.contains(needed), "{needed} is not among {asked:?}");
    }
}

/// The API server warns in its log of every answer that it cannot use.
pub fn complaints(cluster: &Cluster) {
    let log = fs::read_to_string(cluster.plane.dir().join("kube-apiserver.log")).expect("a log");
    let ours = log.lines().filter(|line| line.contains("pods.otel-webhook.io"));
    // It is right where the webhook was stopped on purpose.
    let complaints: Vec<_> = ours.filter(|line| !line.contains("connection refused")).collect();
    assert!(complaints.is_empty(), "{} of them, such as {}", complaints.len(), complaints[0]);
}

fn asked_for(entry: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&entry["verb"]), text(&entry["objectRef"]["resource"]))
}

/// Every verb on every resource of the manifest's rules.
fn granted() -> BTreeSet<String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(ROLES).expect("YAML");
    let role = documents.iter().find(|document| document["kind"] == "ClusterRole").expect("a ClusterRole");
    let mut granted = BTreeSet::new();
    for rule in role["rules"].as_array().expect("rules") {
        for verb in rule["verbs"].as_array().expect("verbs") {
            for resource in rule["resources"].as_array().expect("resources") {
                granted.insert(format!(
                    "{} {}",
                    verb.as_str().expect("a verb"),
                    resource.as_str().expect("a name")
                ));
            }
        }
    }
    granted
}
