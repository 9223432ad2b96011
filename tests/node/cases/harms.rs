//! Each way in which injection can harm a pod, as kubelet reports it.

use otel_webhook_testkit::runner::note;
use otel_webhook_testkit::until::poll;
use serde_json::{Value, json};

use crate::cluster::{Cluster, LIMIT};
use crate::harm::{self, Harm};
use crate::workload::{DELIVERY, Running, asking};

const NAMESPACE: &str = "harms";

/// Each row's pod is created, gets to the reason of the row, and is reported as failing.
pub fn reported_by_kubelet(cluster: &Cluster) {
    cluster.namespace(NAMESPACE, &json!({}));
    let harms = harm::all();
    for harm in &harms {
        cluster.instrumentation(NAMESPACE, harm.name, &harm.spec);
    }
    let pods: Vec<_> = harms.iter().map(|harm| create(cluster, harm)).collect();
    // What has been reported once counts: the reason changes with each try of kubelet.
    let mut missing: Vec<_> = harms.iter().zip(&pods).collect();
    let all = poll(LIMIT, || {
        missing.retain(|(harm, pod)| !harm.reasons(&pod.get()).iter().any(|one| one == harm.reason));
        missing.is_empty().then_some(())
    });
    let names: Vec<_> =
        missing.iter().map(|(harm, _)| format!("{} without {}", harm.name, harm.reason)).collect();
    assert!(all.is_some(), "{}\n{}", names.join("\n"), cluster.states(NAMESPACE));
    reported_by_status(cluster, &harms);
    note(&format!("{} pods were harmed", harms.len()));
    let ran = cluster.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]);
    assert!(ran.ok, "{}", ran.stderr);
}

/// Each row that a container's status shows is reported by `status` by its code.
fn reported_by_status(cluster: &Cluster, harms: &[Harm]) {
    let expected: Vec<_> = harms.iter().filter_map(|harm| Some((harm.name, harm.reported()?))).collect();
    let command = format!("otel-webhook status --namespace {NAMESPACE} --output json");
    let mut missing = expected.clone();
    let mut last = String::new();
    let all = poll(LIMIT, || {
        last = cluster.shell(&command);
        let report: Value = serde_json::from_str(&last).expect("JSON");
        missing.retain(|(name, (code, is_counted))| {
            let failures = of_pod(&report, name);
            !failures.iter().any(|one| one["code"] == *code && one["isCounted"] == *is_counted)
        });
        missing.is_empty().then_some(())
    });
    assert!(all.is_some(), "not reported: {missing:?}\n{last}");
    assert!(expected.len() > 18, "few of the rows are reported: {expected:?}");
}

/// What the report has of a pod that fails.
fn of_pod<'r>(report: &'r Value, name: &str) -> Vec<&'r Value> {
    let own = report["workloads"].as_array().into_iter().flatten().filter(|one| one["name"] == name);
    own.filter_map(|one| one["failures"].as_array()).flatten().collect()
}

fn create<'c>(cluster: &'c Cluster, harm: &Harm) -> Running<'c> {
    let opts_in = format!("inject-{}", harm.language.name);
    let mut pod = asking(harm.name, &[(&opts_in, harm.name)], harm.language.container(&[]));
    pod["spec"]["containers"][0]["resources"] = json!({"limits": harm.limits});
    pod["metadata"]["annotations"][DELIVERY] = harm.delivery.into();
    Running::created(cluster, NAMESPACE, &pod)
}
