//! Instrumentations on their way in: what the CRD refuses by itself, and what
//! users read when the webhook judges.

use std::time::Instant;

use otel_webhook_api::{defaulting, defaults::DefaultImages};
use otel_webhook_testkit::{
    cluster::{control_plane::Ran, manifests::instrumentation},
    table::{Row, rows},
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::registration::{self, register_instrumentations};

/// The schema and its rules, on every row of the table, with nobody to ask.
pub fn crd_alone(cluster: &Cluster) {
    let mut failures = Vec::new();
    for row in rows() {
        let mut object = row.object.clone();
        let patch = defaulting(&object, &DefaultImages::default());
        json_patch::patch(&mut object, &patch).expect("the operations fit");
        let ran = try_out(cluster, &object);
        let is_met = match &row.crd {
            Some(text) => !ran.ok && ran.stderr.contains(text),
            None => ran.ok,
        };
        if !is_met {
            failures.push(format!("{}: expected {:?}, found {}", row.what, row.crd, ran.stderr));
        }
    }
    assert!(failures.is_empty(), "{} rows differ:\n{}", failures.len(), failures.join("\n"));
}

/// Every error of every row reaches the terminal, whoever refused.
pub fn mistakes(cluster: &Cluster) {
    let namespace = "mistakes";
    cluster.namespace(namespace, &[]);
    let _registered = register_instrumentations(&cluster.plane, &cluster.webhook, namespace);
    for row in rows() {
        let Row { what, mut object, errors, warnings, .. } = row;
        object["metadata"]["namespace"] = namespace.into();
        let ran = try_out(cluster, &object);
        assert_eq!(ran.ok, errors.is_empty(), "{what}: {}", ran.stderr);
        // What is opted in is told even if it is correct.
        let opts_in = object["spec"]["inject"].as_array().is_some_and(|languages| !languages.is_empty());
        let is_good = errors.is_empty() && warnings.is_empty() && !opts_in;
        assert!(!is_good || ran.stderr.is_empty(), "{what}: {}", ran.stderr);
        for error in errors {
            // A warning has 250 characters.
            let start: String = error.chars().take(200).collect();
            assert!(ran.stderr.contains(&start), "{what}: {start} is not in\n{}", ran.stderr);
        }
    }
    let sources = json!({"fieldRef": {"fieldPath": "a"}, "secretKeyRef": {"name": "a", "key": "b"}});
    let spec = json!({"env": [{"name": "A", "valueFrom": sources}, {"name": "B", "valueFrom": sources}]});
    let ran = try_out(cluster, &instrumentation(namespace, "two", &spec));
    let one =
        |index| format!("spec.env[{index}].valueFrom: names 2 sources (fieldRef, secretKeyRef); valid: one");
    let refusal = format!("The Instrumentation \"two\" is invalid: \n* {}\n* {}\n", one(0), one(1));
    assert!(ran.stderr.contains(&refusal), "{}", ran.stderr);
}

/// Defaulting takes nothing from the user who applies, and gives nothing twice.
pub fn applied_twice(cluster: &Cluster) {
    let namespace = "applied-twice";
    cluster.namespace(namespace, &[]);
    let _registered = register_instrumentations(&cluster.plane, &cluster.webhook, namespace);
    let spec =
        json!({"sampler": {"type": "always_on"}, "java": {"image": "own:1", "resources": {"limits": {}}}});
    for (name, how) in [("by-server", "--server-side=true"), ("by-client", "--server-side=false")] {
        let object = instrumentation(namespace, name, &spec).to_string();
        let apply = || {
            let ran = cluster.plane.kubectl_in(&["apply", how, "--filename", "-"], &object);
            assert!(ran.ok, "{}", ran.stderr);
            cluster.get(namespace, &["instrumentation", name, "--show-managed-fields"])
        };
        let (first, second) = (apply(), apply());
        assert_eq!(first["spec"]["java"]["image"], "own:1");
        assert_eq!(first["spec"]["go"]["resourceRequirements"]["requests"]["cpu"], "50m");
        assert_eq!(first, second, "{name}");
    }
}

/// One that the CRD of an earlier version let in.
pub fn old(cluster: &Cluster) {
    let namespace = "old";
    cluster.namespace(namespace, &[]);
    let mut object = instrumentation(namespace, "bad", &json!({"sampler": {"type": "sometimes"}}));
    object["metadata"]["finalizers"] = json!(["example.com/finalizer"]);
    registration::apply_unchecked(&cluster.plane, &object);
    let _registered = register_instrumentations(&cluster.plane, &cluster.webhook, namespace);
    let kubectl = |verb: &str, more: &[&str]| {
        let args = [&[verb, "--namespace", namespace, "instrumentation", "bad"], more].concat();
        cluster.plane.kubectl(&args)
    };
    let ran = kubectl("annotate", &["a=b"]);
    assert!(ran.ok && ran.stderr.contains("\"sometimes\" is not a sampler"), "{}", ran.stderr);

    let ran = kubectl("patch", &["--type=merge", r#"--patch={"spec":{"propagators":["B3"]}}"#]);
    assert!(!ran.ok && ran.stderr.contains("(did you mean \"b3\"?)"), "{}", ran.stderr);

    let ran = kubectl("delete", &["--wait=false"]);
    assert!(ran.ok, "{}", ran.stderr);
    let ran = kubectl("patch", &["--type=merge", r#"--patch={"metadata":{"finalizers":null}}"#]);
    assert!(ran.ok, "{}", ran.stderr);
    until("the bad one is gone", || (!kubectl("get", &[]).ok).then_some(()));
}

pub fn unjudged(cluster: &Cluster) {
    let namespace = "unjudged";
    cluster.namespace(namespace, &[]);
    let registered = register_instrumentations(&cluster.plane, &cluster.webhook, namespace);
    let object = instrumentation(namespace, "good", &json!({}));
    let stopped = cluster.webhook.stop();
    let ran = try_out(cluster, &object);
    let sentence = "failed calling webhook \"defaults.otel-webhook.io\"";
    assert!(!ran.ok && ran.stderr.contains(sentence), "{}", ran.stderr);
    drop(stopped);
    let ran = try_out(cluster, &object);
    assert!(ran.ok, "{}", ran.stderr);
    drop(registered);
}

/// A deletion, and an update that takes a language away, say how many pods have the agents, by what the controller
/// counted, and are never rejected.
pub fn deleted(cluster: &Cluster) {
    let namespace = "deleted";
    cluster.namespace(namespace, &[]);
    let _registered = register_instrumentations(&cluster.plane, &cluster.webhook, namespace);
    let delete = |name: &str| {
        let ran = cluster.plane.kubectl(&["delete", "otelinst", name, "--namespace", namespace]);
        assert!(ran.ok, "{}", ran.stderr);
        ran.stderr
    };
    let named = |name: &str| {
        let object = instrumentation(namespace, name, &json!({}));
        let ran = cluster.plane.kubectl_in(&["create", "--filename", "-"], &object.to_string());
        assert!(ran.ok, "{}", ran.stderr);
    };
    let opting_in = r#"{"spec":{"inject":["java","python"],"selector":{"matchLabels":{"app":"a"}}}}"#;
    for (name, injected, expected) in [
        ("used", 225, "Warning: 225 running pods have agents of Instrumentation deleted/used"),
        ("unused", 0, ""),
    ] {
        named(name);
        let status = json!({"status": {"pods": {"matched": injected, "injected": injected}}}).to_string();
        let patch = ["patch", "otelinst", name, "--subresource=status", "--type=merge", "--patch", &status];
        let ran = cluster.plane.kubectl(&[&patch[..], &["--namespace", namespace]].concat());
        assert!(ran.ok, "{}", ran.stderr);
        let update = ["patch", "otelinst", name, "--type=merge", "--namespace", namespace, "--patch"];
        for (spec, taken) in [(opting_in, ""), (r#"{"spec":{"inject":["java"]}}"#, "opts pods in to python")]
        {
            let ran = cluster.plane.kubectl(&[&update[..], &[spec]].concat());
            let is_taken = ran.stderr.contains("225 running pods have agents of this Instrumentation: ");
            assert!(ran.ok && (injected == 0 || ran.stderr.contains(taken)), "{}", ran.stderr);
            assert_eq!(is_taken, injected > 0 && !taken.is_empty(), "{}", ran.stderr);
        }
        let warned = delete(name);
        assert!(warned.starts_with(expected) && warned.is_empty() == expected.is_empty(), "{warned}");
    }
    named("not-counted");
    println!(
        "a deletion takes {:.1} ms longer than without the webhook",
        added(cluster, namespace, "not-counted")
    );
    let warned = delete("not-counted");
    assert!(
        warned.contains("running pods may have agents of Instrumentation deleted/not-counted"),
        "{warned}"
    );
    named("during-an-outage");
    let stopped = cluster.webhook.stop();
    delete("during-an-outage");
    drop(stopped);
}

/// Returns how much longer a deletion takes by the webhook, in milliseconds: the difference of medians.
fn added(cluster: &Cluster, namespace: &str, name: &str) -> f64 {
    let delete = ["delete", "otelinst", name, "--dry-run=server", "--namespace"];
    let median = |namespace: &str| {
        let once = || {
            let started = Instant::now();
            let ran = cluster.plane.kubectl(&[&delete[..], &[namespace]].concat());
            assert!(ran.ok, "{}", ran.stderr);
            started.elapsed()
        };
        let mut all: Vec<_> = (0..11).map(|_| once()).collect();
        all.sort_unstable();
        all[5].as_secs_f64() * 1000.0
    };
    // Not registered there.
    let elsewhere = format!("{namespace}-elsewhere");
    cluster.namespace(&elsewhere, &[]);
    cluster.instrumentation(&elsewhere, name, &json!({}));
    median(namespace) - median(&elsewhere)
}

/// What would come of a creation. Fields that nobody knows are dropped, as controllers' are.
fn try_out(cluster: &Cluster, object: &Value) -> Ran {
    let args = ["create", "--dry-run=server", "--validate=false", "--filename", "-"];
    cluster.plane.kubectl_in(&args, &object.to_string())
}

/// What an API server sent of an Instrumentation that was made for the operator.
const CAPTURED: &str = include_str!("../../data/captured/instrumentation-create.json");

pub fn kept(cluster: &Cluster) {
    let review: Value = serde_json::from_str(CAPTURED).expect("JSON");
    let captured = &review["request"]["object"];
    let namespace = captured["metadata"]["namespace"].as_str().expect("a namespace");
    let name = captured["metadata"]["name"].as_str().expect("a name");
    cluster.namespace(namespace, &[]);
    cluster.instrumentation(namespace, name, &captured["spec"]);
    let stored = cluster.get(namespace, &["instrumentation", name]);
    assert_eq!(stored["spec"], captured["spec"]);

    cluster.instrumentation(namespace, "as-the-operator-stores-it", &defaulted());
    let stored = cluster.get(namespace, &["otelinst", "as-the-operator-stores-it"]);
    assert_eq!(stored["spec"], defaulted());
}

/// With defaults, and with the hollow objects that the operator writes.
fn defaulted() -> Value {
    serde_saphyr::from_str(include_str!("../as-the-operator-stores-it.yaml")).expect("YAML")
}
