//! A certificate that is renewed while pods are created.

use crate::cluster::{Cluster, LIMIT, java};
use crate::traffic::Traffic;
use crate::webhook::pair;
use otel_webhook_testkit::until::until;

const FAILURES: [&str; 2] =
    ["otel_webhook_certificate_reload_failures_total", "otel_webhook_tls_handshake_failures_total"];

pub fn replaced(cluster: &Cluster) {
    let namespace = "renewal";
    cluster.instrumented_namespace(namespace);
    let pod = |number: usize| java(&format!("pod-{number}"));
    let traffic = Traffic::new(&cluster.plane, namespace, &pod);
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

    until("the webhook serves the new certificate", LIMIT, || {
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
