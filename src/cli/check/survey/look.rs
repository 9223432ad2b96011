//! The row of a workload.

use serde_json::{Value, json};

use super::rows::{Next, Pods, Replaced, Surveyed};
use crate::cli::{
    check::files,
    cluster::{
        known::{COLLECTOR, Known},
        object::{labels, own_languages, text},
    },
};
use crate::subject::Subject;
use otel_webhook_fleet::injected;
use otel_webhook_inject::{Finding, mistakes, template::Workload};

/// Returns the row of a workload.
pub fn at(known: &Known, mut object: Value, subject: Subject) -> Option<Surveyed> {
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let mistakes = mistakes::of(&object, &api_version, &kind);
    let replaced = replaced(&object);
    let workload = Workload::of(&mut object, &api_version, &kind)?;
    let (mut unsure, mut agents, mut mounted) = (Vec::new(), Vec::new(), Vec::new());
    let next = match known.decide(&workload, &subject.namespace) {
        Ok(decided) => {
            unsure = decided.unsure;
            let outcome = decided.outcome;
            let mut next = workload.pod.clone();
            // The operations are made for this pod. Without them, the images stay unknown.
            let _ = json_patch::patch(&mut next, &outcome.patch.operations());
            agents = injected::next_agents(&next, &outcome.findings);
            mounted = files::files(&next);
            Next::Decided(outcome.findings)
        }
        Err(problem) => Next::Unreadable(problem),
    };
    let annotations = &workload.pod["metadata"]["annotations"];
    let collector = annotations[COLLECTOR].as_str().map(|value| value != "false");
    Some(Surveyed {
        own: own_languages(workload.pod),
        collector: collector.or_else(|| injected::has_collector(workload.pod).then_some(true)),
        labels: labels(workload.pod),
        subject,
        next,
        unsure,
        agents,
        files: mounted,
        replaced,
        pods: Pods::default(),
        failures: Vec::new(),
        mistakes,
    })
}

/// Returns how the pods of a workload are replaced.
fn replaced(object: &Value) -> Replaced {
    let spec = &object["spec"];
    if spec["paused"] == true {
        Replaced::Paused
    } else if spec["updateStrategy"]["type"] == "OnDelete" {
        Replaced::OnDelete
    } else {
        Replaced::ByRestart
    }
}

/// Returns the findings for a pod without annotations and labels, if the namespace or a selector opts in.
pub fn at_namespace(known: &Known, name: &str) -> Vec<Finding> {
    let mut pod = json!({"metadata": {}, "spec": {"containers": [{"name": "app", "image": "app"}]}});
    let workload = Workload::of(&mut pod, "v1", "Pod").expect("a pod");
    known.decide(&workload, name).map(|decided| decided.outcome.findings).unwrap_or_default()
}
