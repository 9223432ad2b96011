//! A certificate that is renewed while pods are created.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use serde_json::Value;

use crate::cluster::{Cluster, LIMIT, java};
use crate::control_plane::{ControlPlane, until};
use crate::created::{AGENT, items, name};
use crate::webhook::pair;

const FAILURES: [&str; 2] =
    ["otel_webhook_certificate_reload_failures_total", "otel_webhook_tls_handshake_failures_total"];

pub fn replaced(cluster: &Cluster) {
    let namespace = "renewal";
    cluster.instrumented_namespace(namespace);
    let (traffic, plane) = (Traffic::default(), &cluster.plane);
    thread::scope(|scope| {
        let running = scope.spawn(|| traffic.run(plane, namespace));
        // Ends the traffic also when a step fails, or the scope would wait for ever.
        let end = EndOnDrop(&traffic);
        traffic.goes_on();
        renew(cluster, &traffic);
        drop(end);
        let failed = running.join().expect("no panic");
        assert!(failed.is_empty(), "of {} pods not injected: {failed:?}", traffic.created.load(SeqCst));
    });
}

/// In the order that never leaves the API server without the right authority.
fn renew(cluster: &Cluster, traffic: &Traffic) {
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

/// Pods, created one after the other.
#[derive(Default)]
struct Traffic {
    created: AtomicUsize,
    ended: AtomicBool,
}

impl Traffic {
    /// Creates pods until it is told to end. Gives those that were not injected.
    fn run(&self, plane: &ControlPlane, namespace: &str) -> Vec<String> {
        let args = ["create", "--namespace", namespace, "--output", "json", "--filename", "-"];
        let mut failed = Vec::new();
        while !self.ended.load(SeqCst) {
            let number = self.created.load(SeqCst);
            let ran = plane.kubectl_in(&args, &java(&format!("pod-{number}")).to_string());
            let pod: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
            if !items(&pod["spec"]["initContainers"]).any(|container| name(container) == AGENT) {
                failed.push(format!("pod-{number}: {}", ran.stderr));
            }
            self.created.fetch_add(1, SeqCst);
        }
        failed
    }

    /// Waits until a few more pods were created from beginning to end.
    fn goes_on(&self) {
        let before = self.created.load(SeqCst);
        until("more pods are created", LIMIT, || (self.created.load(SeqCst) > before + 3).then_some(()));
    }
}

struct EndOnDrop<'t>(&'t Traffic);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, SeqCst);
    }
}
