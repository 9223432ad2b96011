//! Each way in which injection can harm a pod, as kubelet reports it, and everywhere that the product reports it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use otel_webhook_testkit::runner::note;
use otel_webhook_testkit::until::{poll, until};
use serde_json::{Value, json};

use crate::cluster::{Cluster, HOME};
use crate::harm::{self, Harm};
use crate::workload::{DELIVERY, Running, asking, deployment};

const NAMESPACE: &str = "harms";

/// Each row's pod gets to the reason of the row, and is reported as failing.
pub fn reported_by_kubelet(cluster: &Cluster) {
    cluster.namespace(NAMESPACE, &json!({}));
    let harms = harm::all();
    for harm in &harms {
        cluster.instrumentation(NAMESPACE, harm.name, &harm.spec);
    }
    for harm in &harms {
        cluster.apply(&workload(harm));
    }
    // What has been reported once counts: the reason changes with each try of kubelet.
    let mut missing: Vec<_> = harms.iter().collect();
    let mut times = BTreeMap::new();
    let all = poll(|| {
        missing.retain(|harm| {
            let pods = Running::labelled(cluster, NAMESPACE, &format!("app={}", harm.name));
            let is_harmed = |pod: &Running| harm.reasons(&pod.get()).iter().any(|one| one == harm.reason);
            if pods.iter().any(is_harmed) {
                times.insert(harm.name, Timestamp::now());
            }
            !times.contains_key(harm.name)
        });
        missing.is_empty().then_some(())
    });
    let names: Vec<_> = missing.iter().map(|harm| format!("{} without {}", harm.name, harm.reason)).collect();
    assert!(all.is_some(), "{}\n{}", names.join("\n"), cluster.states(NAMESPACE));
    let reported: Vec<_> = harms.iter().filter_map(|harm| Some((harm.name, harm.reported()?))).collect();
    let counted: Vec<_> =
        reported.iter().filter(|(_, (_, is_counted))| *is_counted).map(|(name, _)| *name).collect();
    assert!(reported.len() > 18 && counted.len() > 12, "few of the rows are reported: {reported:?}");
    by_status(cluster, &reported);
    by_check(cluster, &counted);
    by_the_controller(cluster, &counted, &times);
    note(&format!("{} pods were harmed, {} of them because of what was added", harms.len(), counted.len()));
    let ran = cluster.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]);
    assert!(ran.ok, "{}", ran.stderr);
}

/// `status` has each row by its code.
fn by_status(cluster: &Cluster, reported: &[(&str, (&str, bool))]) {
    let command = format!("otel-webhook status --namespace {NAMESPACE} --output json");
    let mut missing = reported.to_vec();
    let mut last = String::new();
    let all = poll(|| {
        last = cluster.shell(&command);
        let report: Value = serde_json::from_str(&last).expect("JSON");
        missing.retain(|(name, (code, is_counted))| {
            let workloads = report["workloads"].as_array().into_iter().flatten();
            let failures = workloads.filter(|one| one["name"] == *name).map(|one| &one["failures"]);
            let mut failures = failures.filter_map(Value::as_array).flatten();
            !failures.any(|one| one["code"] == *code && one["isCounted"] == *is_counted)
        });
        missing.is_empty().then_some(())
    });
    assert!(all.is_some(), "not reported: {missing:?}\n{last}");
}

/// `check` has each counted row as a failure, and what to do.
fn by_check(cluster: &Cluster, counted: &[&str]) {
    let command = format!("otel-webhook check --namespace {NAMESPACE} --output json");
    let expected: BTreeSet<_> = counted.iter().map(|name| (*name).to_owned()).collect();
    let mut last = String::new();
    let all = poll(|| {
        last = cluster.try_shell(&command).stdout;
        let results = last.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let failing = results.filter(|one| one["code"] == "PodsFailing" && one["advice"].is_string());
        let found: BTreeSet<_> =
            failing.filter_map(|one| one["object"]["name"].as_str().map(str::to_owned)).collect();
        (found == expected).then_some(())
    });
    assert!(all.is_some(), "expected failures of {expected:?}:\n{last}");
}

/// The status of each counted row's Instrumentation counts its pod, its workload has an Event with what kubelet says,
/// and the metrics count the pods by language. Prints how long after the reason in the pod's status the Event was made.
fn by_the_controller(cluster: &Cluster, counted: &[&str], times: &BTreeMap<&str, Timestamp>) {
    let mut missing = counted.to_vec();
    let all = poll(|| {
        missing.retain(|name| {
            let status = &cluster.get(NAMESPACE, &["otelinst", name])["status"];
            status["pods"]["failing"].as_u64().unwrap_or_default() == 0
        });
        missing.is_empty().then_some(())
    });
    assert!(all.is_some(), "not counted in the statuses of the Instrumentations: {missing:?}");

    let mut missing = counted.to_vec();
    let mut last = Value::Null;
    let mut delays = Vec::new();
    let all = poll(|| {
        last = cluster.get(NAMESPACE, &["events", "--field-selector=reason=Failing"]);
        missing.retain(|name| {
            let mut events = last["items"].as_array().into_iter().flatten();
            let is_own = |event: &&Value| event["involvedObject"]["name"] == *name && quotes_kubelet(event);
            let Some(event) = events.find(is_own) else { return true };
            let made = event["eventTime"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
            delays.push(made.expect("a time").duration_since(times[name]).as_secs_f64());
            false
        });
        missing.is_empty().then_some(())
    });
    assert!(all.is_some(), "without an Event: {missing:?}\n{last}");
    let longest = delays.into_iter().fold(f64::NEG_INFINITY, f64::max);
    note(&format!("each Event was made at most {longest:.1} s after the pod's status had the reason"));

    let languages: BTreeSet<_> = harm::all()
        .iter()
        .filter(|harm| counted.contains(&harm.name))
        .map(|harm| harm.language.name)
        .collect();
    until("the leader's metrics count failing pods of each language", || {
        let controllers = Running::labelled(cluster, HOME, "app.kubernetes.io/component=controller");
        let metrics: String = controllers.iter().map(|pod| pod.served("metrics")).collect();
        let is_counted = |language: &&str| {
            let begin = format!("otel_webhook_pods_failing{{language=\"{language}\"}} ");
            metrics.lines().filter_map(|line| line.strip_prefix(&begin)).any(|count| count != "0")
        };
        languages.iter().all(is_counted).then_some(())
    });
}

/// Whether an Event ends with a message of kubelet.
fn quotes_kubelet(event: &Value) -> bool {
    let note = event["message"].as_str().unwrap_or_default();
    note.split_once("The kubelet says: ").is_some_and(|(_, said)| !said.trim().is_empty())
}

fn workload(harm: &Harm) -> Value {
    let opts_in = format!("inject-{}", harm.language.name);
    let mut pod = asking(harm.name, &[(&opts_in, harm.name)], harm.language.container(&[]));
    pod["spec"]["containers"][0]["resources"] = json!({"limits": harm.limits});
    pod["metadata"]["annotations"][DELIVERY] = harm.delivery.into();
    deployment(NAMESPACE, harm.name, 1, pod)
}
