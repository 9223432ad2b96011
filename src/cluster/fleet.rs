//! The running pods of a cluster, counted as the controller counts them, with what the user may not read.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    facts::{Facts, ServiceFacts},
    known::Known,
};
use otel_webhook_fleet::{
    advice::Outside,
    census::Census,
    count::{self, Counted},
    next::{Around, Doubts, Separated},
    pod::RunningPod,
    report::Report,
    restart::{Consent, annotations::RESTART},
    state::State,
};
use otel_webhook_inject::Finding;
use otel_webhook_server::registration::Registration;
use otel_webhook_store::unread::{Unread, Unsure};

/// Counts pods. Returns the namespaces, too, that have Instrumentations which pods name and which were not listed.
/// `registration` is `None` if it is not known which pods are sent to the webhook.
pub fn count(
    census: &Census,
    known: &Known,
    registration: Option<&Registration>,
) -> (Counted, BTreeSet<String>) {
    let created = created(known);
    let is_selected = |namespace: &str, labels: &BTreeMap<String, String>, asks_itself: bool| {
        let namespace = known.namespaces.get(namespace);
        let Some((registration, namespace)) = registration.zip(namespace) else { return true };
        registration.pods().any(|hook| hook.selects(namespace, labels, asks_itself))
    };
    let around = Around { catalogue: &known.snapshot.catalogue, settings: &known.settings };
    let doubts = NotReadable { unread: &known.unread, named: RefCell::default() };
    let known = count::Known { around, created: &created, is_selected: &is_selected, heard: None };
    let counted = count::count_with(census, &known, &doubts);
    (counted, doubts.named.into_inner())
}

/// Returns the state of each language of one pod.
pub fn states(pod: &RunningPod, known: &Known) -> Vec<(&'static str, State)> {
    let mut census = Census::default();
    census.put(pod.clone());
    let rows = count(&census, known, None).0.report.workloads.into_iter();
    rows.flat_map(|row| row.languages).map(|row| (row.language, row.state)).collect()
}

/// Returns what keeps restarts from being advised, apart from what the pods show.
pub fn outside(facts: &Facts, known: &Known) -> Outside {
    let conditions = known.instrumentations.iter().flat_map(|((namespace, name), object)| {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        conditions.map(move |condition| (format!("{namespace}/{name}"), condition))
    });
    let stopped = conditions
        .filter(|(_, one)| one["type"] == "RestartStopped" && one["status"] == "True")
        .map(|(name, one)| (name, one["message"].as_str().unwrap_or_default().to_owned()));
    let never_in = known.consents.iter().filter(|(_, consent)| is_never(Some(consent)));
    Outside {
        outage: facts.services.iter().find_map(ServiceFacts::outage),
        stopped: stopped.collect(),
        never: HashSet::new(),
        never_in: never_in.map(|(namespace, _)| namespace.clone()).collect(),
    }
}

/// Adds what the controller has written of the data that arrives.
pub fn hear(report: &mut Report, known: &Known) {
    for row in &mut report.instrumentations {
        let object = known.instrumentations.get(&(row.namespace.clone(), row.name.clone()));
        let written = |field: &str| usize::try_from(object?["status"]["pods"][field].as_u64()?).ok();
        (row.pods.heard, row.pods.silent) = (written("heard"), written("silent"));
    }
}

/// Whether the annotations of a workload forbid restarts.
pub fn forbids(object: &Value) -> bool {
    is_never(object["metadata"]["annotations"][RESTART].as_str())
}

fn is_never(consent: Option<&str>) -> bool {
    consent.is_some() && Consent::of(consent, None, None) == Ok(Consent::Never)
}

/// Returns when each Instrumentation was created.
fn created(known: &Known) -> HashMap<String, Timestamp> {
    let instrumentations = known.instrumentations.iter();
    let created = instrumentations.filter_map(|((namespace, name), object)| {
        let created = object["metadata"]["creationTimestamp"].as_str()?.parse().ok()?;
        Some((format!("{namespace}/{name}"), created))
    });
    created.collect()
}

/// What the user may not read, and what has to be listed to know more.
struct NotReadable<'u> {
    unread: &'u Unread,
    /// The namespaces with Instrumentations that pods name and that were not listed.
    named: RefCell<BTreeSet<String>>,
}

impl Doubts for NotReadable<'_> {
    fn separate(&self, namespace: &str, findings: Vec<Finding>) -> Separated {
        let (certain, unsure) = self.unread.divide(namespace, findings);
        let named = unsure.iter().filter_map(Unsure::instrumentations_of).map(str::to_owned);
        self.named.borrow_mut().extend(named);
        let unknown = unsure.iter().map(|one| (one.language, one.missing.to_string())).collect();
        let others = self.unread.opt_ins(namespace).map(|missing| missing.to_string());
        Separated { certain, unknown, others }
    }

    fn configurations(&self) -> Option<&str> {
        self.unread.flags.as_deref()
    }
}
