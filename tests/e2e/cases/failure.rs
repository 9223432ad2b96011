//! Pods come before agents, and a new certificate costs none its agent.

use std::collections::BTreeMap;
use std::time::Instant;

use otel_webhook_testkit::{
    cluster::{
        created::Created,
        manifests::{deployment_of, template_asking},
        traffic::Traffic,
    },
    until::until,
};

use crate::audit;
use crate::cluster::{Cluster, java};
use crate::registration;
use crate::webhook::pair;

pub fn stopped(cluster: &Cluster) {
    let namespace = "stopped";
    cluster.instrumented_namespace(namespace);

    let stopped = cluster.webhook.stop();
    let pod = cluster.create(namespace, &java("alone"));
    assert!(pod.is_untouched(), "{}", pod.pod);
    // The API server says why: it called, nobody answered, and the policy is to ignore that.
    let audited = audit::of_creation(cluster, namespace, "alone");
    // Its place among the webhooks depends on those of other cases.
    let failed = "failed-open.mutation.webhook.admission.k8s.io/round_0_index_";
    let mut entries = audited.as_object().expect("annotations").iter();
    let is_named = entries.any(|(key, value)| key.starts_with(failed) && value == "pods.otel-webhook.io");
    assert!(is_named, "{audited}");
    drop(stopped);

    let pod = cluster.create(namespace, &java("again"));
    assert!(pod.is_injected(), "{}", pod.pod);
}

/// What the API server counts, when it creates an object although a webhook did not answer.
const FAILED_OPEN: &str = "apiserver_admission_webhook_fail_open_count";

/// The process is stopped, so that connections stay open and nobody answers: each call lasts as long as its
/// timeout. A ReplicaSet creates 1, 2, 4 and 3 pods, one batch after the other.
pub fn hanging(cluster: &Cluster) {
    let namespace = "hanging";
    cluster.instrumented_namespace(namespace);
    let registered = registration::register_workloads(&cluster.plane, &cluster.webhook, namespace);
    let of = |replicas, ask| {
        deployment_of(namespace, replicas, &template_asking("hanging", &[("inject-java", ask)]))
    };
    let probe = of(0, "unknown");
    until("the registration is in effect", || {
        let ran = cluster.plane.kubectl_in(&["apply", "--dry-run=server", "-f", "-"], &probe.to_string());
        ran.stderr.contains("Warning: otel-webhook").then_some(())
    });
    let before = failed_open(cluster);

    let paused = cluster.webhook.pause();
    let began = Instant::now();
    cluster.apply(&of(10, "true"));
    let pods = cluster.pods_of(namespace, "app=hanging", 10);
    let took = began.elapsed();
    drop(paused);
    drop(registered);

    let after = failed_open(cluster);
    let count = |name: &str| after.get(name).unwrap_or(&0) - before.get(name).unwrap_or(&0);
    let (of_pods, of_workloads) = (count("pods.otel-webhook.io"), count("workloads.otel-webhook.io"));
    println!(
        "10 pods of a Deployment in {:.1} s while the webhook hangs: {of_pods} reviews of pods and \
         {of_workloads} of workloads timed out",
        took.as_secs_f64()
    );
    assert!(pods.iter().all(Created::is_untouched));
    assert_eq!(of_pods, 10, "each pod once");
    // That of the Deployment, which kubectl sends; those of controllers are not sent.
    assert_eq!(of_workloads, 1, "only the user's request");
    let pod = cluster.create(namespace, &java("again"));
    assert!(pod.is_injected(), "{}", pod.pod);
}

/// How many calls of each webhook have failed open, by its name.
fn failed_open(cluster: &Cluster) -> BTreeMap<String, u64> {
    let metrics = cluster.run(&["get", "--raw", "/metrics"]).stdout;
    let of_line = |line: &str| {
        let (labels, count) = line.strip_prefix(FAILED_OPEN)?.rsplit_once(' ')?;
        let name = labels.split_once("name=\"")?.1.split_once('"')?.0;
        Some((name.to_owned(), count.parse().expect("a whole number")))
    };
    metrics.lines().filter_map(of_line).collect()
}

const FAILURES: [&str; 2] =
    ["otel_webhook_certificate_reload_failures_total", "otel_webhook_tls_handshake_failures_total"];

/// A certificate that is renewed while pods are created.
pub fn replaced_certificate(cluster: &Cluster) {
    let namespace = "renewal";
    cluster.instrumented_namespace(namespace);
    let pod = |number: usize| {
        let mut pod = java(&format!("pod-{number}"));
        pod["metadata"]["namespace"] = namespace.into();
        pod
    };
    let traffic = Traffic::new(&cluster.plane, 1, &pod, Created::is_injected);
    traffic.during(|| renew(cluster, &traffic));
}

/// In the order that never leaves the API server without the right authority.
fn renew(cluster: &Cluster, traffic: &Traffic<'_>) {
    let old = &cluster.webhook.first_authority;
    let new = pair();
    let failures = || FAILURES.map(|metric| cluster.webhook.metric(metric));
    let before = failures();
    cluster.register(&[old, &new.ca_pem]);
    traffic.goes_on();

    cluster.webhook.replace_certificate(&new);

    until("the webhook serves the new certificate", || {
        let log = cluster.webhook.log();
        log.iter().any(|line| line["message"] == "serving a new certificate").then_some(())
    });
    traffic.goes_on();
    // With another bundle the API server makes new connections, on which it
    // trusts the new authority alone.
    cluster.register(&[&new.ca_pem]);
    traffic.goes_on();
    assert_eq!(failures(), before, "{FAILURES:?}");
}
