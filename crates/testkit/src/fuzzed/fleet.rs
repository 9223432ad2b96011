//! What tenants give the controller: running pods, workloads, the ledger of restarts and the records of workloads.

use std::{collections::HashMap, sync::LazyLock};

use jiff::Timestamp;
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_fleet::{
    census::Census,
    count::{self, Counted},
    next::Around,
    pod::RunningPod,
    restart::{Change, Ledger, Observed, Pace, Rollout, Unwell, Webhook, plan},
};
use otel_webhook_inject::Settings;
use serde_json::{Value, json};

use crate::{
    known::Known,
    objects::{instrumentation, usual_spec},
};

/// What is known around every pod: an Instrumentation is compiled once, which takes longer than a count.
static KNOWN: LazyLock<Known> =
    LazyLock::new(|| Known::of(&[instrumentation("inst", usual_spec())], &DefaultImages::default()));

/// A running pod, as a document: it is counted once, after any other pod of its name and template, and forgotten.
pub fn running_pod(data: &[u8]) {
    let Ok(mut pod) = serde_json::from_slice::<Value>(data) else { return };
    if !pod.is_object() || !(pod["metadata"].is_null() || pod["metadata"].is_object()) {
        return;
    }
    // So that no input does nothing.
    let metadata = &mut pod["metadata"];
    for (field, value) in [("creationTimestamp", "2026-01-01T00:00:00Z"), ("uid", "u-1"), ("name", "order-1")]
    {
        if metadata[field].is_null() {
            metadata[field] = value.into();
        }
    }
    let mut census = Census::default();
    let of_metadata = RunningPod::of_metadata(&pod["metadata"]);
    let Some(read) = RunningPod::read(&pod) else { return };
    let uid = read.uid.clone();
    for known in of_metadata.into_iter().chain([read.clone(), read]) {
        census.put(known);
    }
    assert_eq!((census.len(), census.groups().count()), (1, 1), "{pod}");
    let settings = Settings::default();
    let around = Around { catalogue: &KNOWN.catalogue, settings: &settings };
    let (created, is_selected) = (HashMap::new(), |_: &str, _: &_, _: bool| true);
    let known = count::Known { around, created: &created, is_selected: &is_selected, heard: None };
    let Counted { report, pods, .. } = count::count(&census, &known);
    assert!(report.workloads.len() <= 1 && pods.len() <= 1, "{pod}");
    for language in report.workloads.iter().flat_map(|row| &row.languages) {
        assert_eq!(language.pods.matched, 1, "{pod}");
    }
    assert!(census.forget(&uid) && census.is_empty(), "{pod}");
}

/// A Deployment, a StatefulSet or a DaemonSet, as a document.
pub fn workload(data: &[u8]) {
    let Ok(object) = serde_json::from_slice::<Value>(data) else { return };
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        let rollout = Rollout::read(kind, &object).expect("a kind that is restarted");
        let _ = rollout.health(Timestamp::UNIX_EPOCH, Unwell::default());
        assert_eq!(Rollout::read(kind, &object), Some(rollout));
    }
    assert_eq!(Rollout::read("Pod", &object), None);
}

/// The ledger: what was read is written and read as the same, and plans with it go on.
pub fn ledger(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(ledger) = Ledger::read(text) else { return };
    assert_eq!(Ledger::read(&ledger.write()).expect("its own text"), ledger, "{text}");
    let now: Timestamp = "2026-11-01T00:00:00Z".parse().expect("a time");
    let webhook = Webhook::default();
    let observed = Observed { now, instrumentations: &[], workloads: &[], webhook: &webhook };
    let planned = plan(observed, &Pace::default(), &ledger);
    assert!(planned.steps.is_empty(), "nothing is seen, so nothing is restarted: {text}");
    assert!(planned.ledger.starts.iter().all(|start| *start <= now), "{text}");
}

/// The record of a workload: what was read is written and read as the same.
pub fn record(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let object =
        json!({"metadata": {"annotations": {"otel-webhook/restarted": text, "otel-webhook/restart": text}}});
    assert!(Rollout::read("Deployment", &object).is_some());
    let Some(change) = Change::read(text) else { return };
    assert_eq!(Change::read(&change.write()), Some(change), "{text}");
}
