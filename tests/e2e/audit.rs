//! What the API server's audit log says of webhooks and of who asks for what.

use std::collections::BTreeSet;
use std::fs;

use otel_webhook_testkit::{objects::items, until::until};
use serde_json::Value;

use crate::cluster::Cluster;

pub use crate::registration::ACCOUNT;

/// Every entry so far that has this text in it. There are many of other cases.
fn entries(cluster: &Cluster, part: &str) -> Vec<Value> {
    let text = fs::read_to_string(cluster.plane.audit_log()).expect("an audit log");
    let lines = text.lines().filter(|line| line.contains(part));
    // The last line may be on its way.
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The annotations of the entry for the creation of a pod.
pub fn of_creation(cluster: &Cluster, namespace: &str, pod: &str) -> Value {
    until(&format!("an audit entry for the creation of {namespace}/{pod}"), || {
        let mut entries = entries(cluster, &format!("\"{pod}\"")).into_iter();
        let found = entries.find(|entry| {
            let object = &entry["objectRef"];
            entry["verb"] == "create"
                && object["resource"] == "pods"
                && object["namespace"] == namespace
                && object["name"] == pod
                && !entry["requestURI"].as_str().unwrap_or_default().contains("dryRun")
        });
        found.map(|entry| entry["annotations"].clone())
    })
}

/// The webhook's own word on a pod: languages, containers and codes.
pub fn decision(cluster: &Cluster, namespace: &str, pod: &str) -> String {
    let annotations = of_creation(cluster, namespace, pod);
    annotations["pods.otel-webhook.io/injection"].as_str().unwrap_or_default().to_owned()
}

/// What an account asked for, as verbs on resources. It must never have been refused.
///
/// A patch that creates an object needs `create` as well, which the log does not say.
pub fn asked(cluster: &Cluster, account: &str) -> BTreeSet<String> {
    let mut asked = BTreeSet::new();
    // Paths such as /version are no resources, and open to every user that is authenticated.
    let is_one = |entry: &&Value| entry["user"]["username"] == account && entry["objectRef"].is_object();
    for entry in entries(cluster, account).iter().filter(is_one) {
        let code = &entry["responseStatus"]["code"];
        assert!(code != 401 && code != 403, "it was refused: {entry}");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (verb, mut resource) = (text(&entry["verb"]), text(&entry["objectRef"]["resource"]));
        if let Some(part) = entry["objectRef"]["subresource"].as_str() {
            resource = format!("{resource}/{part}");
        }
        if verb == "patch" && *code == 201 {
            asked.insert(format!("create {resource}"));
        }
        asked.insert(format!("{verb} {resource}"));
    }
    asked
}

/// Panics if an account asked for more than these manifests grant.
pub fn asked_only_for(cluster: &Cluster, account: &str, manifests: &[Value]) {
    let more: Vec<_> = asked(cluster, account).difference(&granted(manifests)).cloned().collect();
    assert!(more.is_empty(), "asked for but not granted: {more:?}");
}

/// How often an account used a verb on a resource, its subresources included.
pub fn count(cluster: &Cluster, account: &str, verb: &str, resource: &str) -> usize {
    let is_one = |entry: &&Value| {
        entry["user"]["username"] == account
            && entry["verb"] == verb
            && entry["objectRef"]["resource"] == resource
    };
    entries(cluster, account).iter().filter(is_one).count()
}

/// When an account patched an object, without errors.
pub fn patches(cluster: &Cluster, account: &str, resource: &str, namespace: &str, name: &str) -> Vec<String> {
    answered_patches(cluster, account, [resource, namespace, name], 200)
}

/// When an account sent patches of an object, by its resource, namespace and name, that had this status.
pub fn answered_patches(
    cluster: &Cluster,
    account: &str,
    [resource, namespace, name]: [&str; 3],
    status: u16,
) -> Vec<String> {
    let entries = entries(cluster, account).into_iter().filter(|entry| {
        let object = &entry["objectRef"];
        entry["user"]["username"] == account
            && entry["verb"] == "patch"
            && entry["responseStatus"]["code"] == status
            && object["resource"] == resource
            && object["namespace"] == namespace
            && object["name"] == name
    });
    entries.map(|entry| entry["requestReceivedTimestamp"].as_str().unwrap_or_default().to_owned()).collect()
}

/// What the webhook requested by name in a namespace, or of the namespace itself.
pub fn gets(cluster: &Cluster, namespace: &str) -> Vec<String> {
    let entries = entries(cluster, ACCOUNT).into_iter();
    let own = entries.filter(|entry| {
        entry["user"]["username"] == ACCOUNT
            && entry["verb"] == "get"
            && entry["objectRef"]["namespace"] == namespace
    });
    own.map(|entry| entry["requestURI"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Every verb on every resource of the rules in these manifests.
pub fn granted(manifests: &[Value]) -> BTreeSet<String> {
    let rules = manifests.iter().flat_map(|manifest| items(&manifest["rules"]));
    let pairs = rules.flat_map(|rule| {
        let verbs = items(&rule["verbs"]).filter_map(Value::as_str);
        verbs.flat_map(|verb| {
            let resources = items(&rule["resources"]).filter_map(Value::as_str);
            resources.map(move |resource| format!("{verb} {resource}"))
        })
    });
    pairs.collect()
}
