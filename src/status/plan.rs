//! `status --plan`: which workloads would be restarted, when, and why the others are not. Nothing is changed.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, StatefulSet},
    core::v1::ConfigMap,
};
use kube::core::ApiResource;
use serde_json::Value;

use crate::cluster::{
    facts::{Facts, not_readable},
    fleet,
    known::Known,
    object::text,
    reader::{ClusterReader, Part},
    running::RestartFlags,
};
use otel_webhook_fleet::{
    count::WorkloadPods,
    report::{Report, RestartRow},
    restart::{
        Around, Health, Instrumentation, LEDGER_KEY, Ledger, Observed, ObservedWorkload, Pace, Rollout,
        Unwell, Verdict, Webhook, annotations, plan,
    },
    workload::Workload,
};

/// Plans restarts, and writes what becomes of each workload into the report. Returns what is not known.
pub async fn write(
    cluster: &ClusterReader,
    scope: Option<&str>,
    facts: &Facts,
    known: &Known,
    pods: Vec<WorkloadPods>,
    report: &mut Report,
) -> Vec<String> {
    let mut incomplete = Vec::new();
    let flags = restart_flags(facts, &mut incomplete);
    let ledger = ledger(cluster, flags, &mut incomplete).await;
    let elsewhere = |namespace: &str| scope.is_some_and(|scope| scope != namespace);
    if ledger.flights.iter().any(|flight| elsewhere(&flight.workload.namespace)) {
        incomplete.push("the plan does not count restarts in other namespaces".to_owned());
    }
    let rollouts = rollouts(cluster, scope, &mut incomplete).await;
    let now = Timestamp::now();
    let instrumentations = instrumentations(known);
    let one = |pods: WorkloadPods| seen(pods, &rollouts, known, &instrumentations, now);
    let workloads: Vec<ObservedWorkload> = pods.into_iter().map(one).collect();
    let listed: Vec<_> = instrumentations.values().map(|(one, _)| one.clone()).collect();
    // A workstation does not reach the replicas.
    let webhook = Webhook::default();
    let observed = Observed { now, instrumentations: &listed, workloads: &workloads, webhook: &webhook };
    let pace = flags.map_or_else(Pace::default, |flags| flags.pace.clone());
    let planned = plan(observed, &pace, &ledger);
    let verdicts = workloads.iter().map(|seen| &seen.workload).zip(&planned.verdicts);
    let verdicts: HashMap<_, _> = verdicts.collect();
    for row in &mut report.workloads {
        let verdict = verdicts.get(&row.workload).filter(|verdict| ***verdict != Verdict::UpToDate);
        row.restart = verdict.map(|verdict| RestartRow::from(*verdict));
    }
    incomplete
}

/// Returns the workloads whose annotation forbids restarts, as far as the user may read them.
pub async fn refusing(cluster: &ClusterReader, scope: Option<&str>) -> HashSet<Workload> {
    let mut refusing = HashSet::new();
    for resource in kinds() {
        let take = |object: Value| {
            if fleet::forbids(&object) {
                let (namespace, name) =
                    (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
                refusing.insert(Workload::new(&resource.kind, &namespace, &name));
            }
        };
        // What is not readable is not known to forbid them.
        let _ = cluster.each(&resource, scope, Part::Metadata, take).await;
    }
    refusing
}

/// The kinds that are restarted.
fn kinds() -> [ApiResource; 3] {
    [
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<StatefulSet>(&()),
        ApiResource::erase::<DaemonSet>(&()),
    ]
}

/// Returns the flags of the controller that restarts workloads; none if there is no such controller.
fn restart_flags<'f>(facts: &'f Facts, incomplete: &mut Vec<String>) -> Option<&'f RestartFlags> {
    let problem = match facts.controller.as_ref().map(|controller| &controller.restarts) {
        Some(Ok(Some(flags))) => return Some(flags),
        Some(Ok(None)) => "the controller runs without --restarts".to_owned(),
        Some(Err(problem)) => format!("the flags of the controller are not readable: {problem}"),
        None => "no controller was found".to_owned(),
    };
    incomplete.push(format!("{problem}: the plan is that of a controller with --restarts and default flags"));
    None
}

/// Reads what was restarted before.
async fn ledger(
    cluster: &ClusterReader,
    flags: Option<&RestartFlags>,
    incomplete: &mut Vec<String>,
) -> Ledger {
    let Some(RestartFlags { namespace, config_map, .. }) = flags else { return Ledger::default() };
    let found = cluster.get::<ConfigMap>(Some(namespace), config_map).await;
    let read = match found {
        Ok(found) => {
            let text = found.and_then(|found| found.data?.remove(LEDGER_KEY));
            let read = text.map(|text| Ledger::read(&text)).transpose();
            read.map(Option::unwrap_or_default).map_err(|error| error.to_string())
        }
        Err(failed) => Err(not_readable(&failed)),
    };
    read.unwrap_or_else(|problem| {
        incomplete.push(format!(
            "the plan does not know what was restarted: ConfigMap {namespace}/{config_map}: {problem}"
        ));
        Ledger::default()
    })
}

async fn rollouts(
    cluster: &ClusterReader,
    scope: Option<&str>,
    incomplete: &mut Vec<String>,
) -> HashMap<Workload, Rollout> {
    let mut rollouts = HashMap::new();
    let kinds = [
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<StatefulSet>(&()),
        ApiResource::erase::<DaemonSet>(&()),
    ];
    for kind in kinds {
        let take = |object: Value| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let workload = Workload::new(&kind.kind, text("namespace"), text("name"));
            rollouts.extend(Rollout::read(&kind.kind, &object).map(|rollout| (workload, rollout)));
        };
        if let Err(failed) = cluster.each(&kind, scope, Part::Whole, take).await {
            incomplete.push(format!("the plan lacks workloads: {}", not_readable(&failed)));
        }
    }
    rollouts
}

/// Returns the Instrumentations and their consents, by `namespace/name`.
fn instrumentations(known: &Known) -> HashMap<String, (Instrumentation, Option<String>)> {
    let of = |((namespace, name), object): (&(String, String), &Value)| {
        let metadata = &object["metadata"];
        let annotation = |key: &str| metadata["annotations"][key].as_str().map(str::to_owned);
        let one = Instrumentation {
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            namespace: namespace.clone(),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            resume: annotation(annotations::RESUME),
        };
        (format!("{namespace}/{name}"), (one, annotation(annotations::RESTART)))
    };
    known.instrumentations.iter().map(of).collect()
}

fn seen(
    pods: WorkloadPods,
    rollouts: &HashMap<Workload, Rollout>,
    known: &Known,
    instrumentations: &HashMap<String, (Instrumentation, Option<String>)>,
    now: Timestamp,
) -> ObservedWorkload {
    let namespace = pods.workload.namespace.clone();
    let instrumentation = pods.instrumentation.as_ref().and_then(|name| {
        let is_own = name.split('/').next() == Some(&namespace);
        let (one, consent) = instrumentations.get(name)?;
        Some((&*one.uid, consent.as_deref().filter(|_| is_own)))
    });
    let around = Around { namespace: known.consents.get(&namespace).map(String::as_str), instrumentation };
    let rollout = rollouts.get(&pods.workload);
    let health = rollout.map_or(Health::Healthy, |rollout| rollout.health(now, Unwell::default()));
    ObservedWorkload::of(pods, rollout, around, health, None)
}
