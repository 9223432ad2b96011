//! Another mode of certificates, as certs/README.md changes it: by a second release, next to which the first one goes
//! on until the second one is ready.

use otel_webhook_testkit::{objects::items, until::until};
use serde_json::json;

use super::values;
use crate::cert_manager::CertManager;
use crate::cluster::Cluster;
use crate::helm::Release;
use crate::pod::{Pod, Ports};

const NAMESPACE: &str = "mode-release";

/// The name of the second release in certs/README.md, and the full name that the chart makes of it.
const SECOND: &str = "injector";
const SECOND_FULLNAME: &str = "injector-otel-webhook";

pub fn changed(cluster: &Cluster) {
    const README: &str = include_str!("../../../certs/README.md");
    let command = format!(
        "helm install {SECOND} charts/otel-webhook --namespace otel-webhook --set crds.install=false"
    );
    assert!(README.contains(&command), "certs/README.md does not have: {command}");
    let _cert_manager = CertManager::start(cluster);
    let [first_ports, second_ports] = [Ports::free(), Ports::free()];
    let certificates = |mode: &str| json!({"mode": mode, "extraNames": ["localhost"]});
    let first = Release::new(cluster, "helm3", NAMESPACE);
    first.install(&values(first_ports, json!({"certificates": certificates("managed")})));
    let old = Pod::start(cluster, NAMESPACE, first_ports);
    cluster.namespace("mode-apps");
    cluster.instrumentation("mode-apps");
    cluster.until_injected("mode-apps");

    let second = Release::named(cluster, "helm3", NAMESPACE, SECOND);
    let mut new = None;
    cluster.during_traffic("mode-apps", |traffic| {
        let more = json!({"crds": {"install": false}, "certificates": certificates("cert-manager")});
        second.install(&values(second_ports, more));
        let pod = new.insert(Pod::of(cluster, NAMESPACE, SECOND_FULLNAME, second_ports));
        pod.until_ready();
        // Both are called from now on.
        until("the second one is trusted", || is_trusted(cluster).then_some(()));
        traffic.goes_on();
        first.uninstall();
        traffic.goes_on();
        drop(old);
        traffic.goes_on();
    });
    assert!(cluster.find("mutatingwebhookconfiguration", "otel-webhook").is_none());
    drop(new);
}

/// What `otel-webhook check` says of the second release.
fn is_trusted(cluster: &Cluster) -> bool {
    let found = cluster.find("mutatingwebhookconfiguration", SECOND_FULLNAME);
    let webhooks = found.map(|mut found| found["webhooks"].take()).unwrap_or_default();
    items(&webhooks).all(|webhook| webhook["clientConfig"]["caBundle"].is_string())
}
