//! With cert-manager: its controllers issue the certificate and put the
//! authority into the registration.

use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use super::values;
use crate::cert_manager::CertManager;
use crate::cluster::Cluster;
use crate::helm::Release;
use crate::pod::{Pod, Ports};

const RENEWALS: usize = 3;

pub fn issues_and_renews(cluster: &Cluster) {
    let _cert_manager = CertManager::start(cluster);
    let ports = Ports::free();
    let release = Release::new(cluster, "helm3", "cert-manager-release");
    let certificates = json!({"mode": "cert-manager", "extraNames": ["localhost"]});
    release.install(&values(ports, json!({"certificates": certificates})));
    let pod = Pod::start(cluster, &release.namespace, ports);
    cluster.namespace("cert-manager-apps");
    cluster.instrumentation("cert-manager-apps");
    cluster.until_injected("cert-manager-apps");

    cluster.during_traffic("cert-manager-apps", |traffic| {
        for _ in 0..RENEWALS {
            renew(cluster, &release.namespace);
            pod.mount_again();
            traffic.goes_on();
        }
    });
}

/// What `cmctl renew` does, and the wait until it is done.
fn renew(cluster: &Cluster, namespace: &str) {
    let certificate = "otel-webhook";
    let revision = || {
        let found = cluster.find_in(namespace, "certificate", certificate).expect("a Certificate");
        found["status"]["revision"].as_i64().unwrap_or_default()
    };
    let before = revision();
    let condition = json!({"type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
        "message": "renewed by a test", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let patch: Value = json!([{"op": "add", "path": "/status/conditions/-", "value": condition}]);
    let patch = patch.to_string();
    let args = ["patch", "certificate", certificate, "--namespace", namespace, "--subresource", "status"];
    let ran = cluster.plane.kubectl(&[&args[..], &["--type", "json", "--patch", &patch]].concat());
    assert!(ran.ok, "{}", ran.stderr);
    until("the certificate is renewed", || (revision() > before).then_some(()));
}
