//! The controller, with the rights and the arguments that the chart gives it.

use otel_webhook_testkit::until::until;
use serde_json::json;

use crate::cluster::{Cluster, LIMIT};
use crate::helm::Release;
use crate::pod::{Pod, Ports};

const NAME: &str = "otel-webhook-controller";
const APPS: &str = "controller-apps";

/// Its roles are enough for it to lead and to write what it found, and for nothing else.
pub fn tells(cluster: &Cluster) {
    let ports = Ports::free();
    let release = Release::new(cluster, "helm3", "controller-release");
    let values = json!({"certificates": {"extraNames": ["localhost"]}});
    release.install(&super::values(ports, values));
    let _webhook = Pod::start(cluster, &release.namespace, ports);
    cluster.namespace(APPS);
    cluster.instrumentation(APPS);
    cluster.until_injected(APPS);
    cluster.create_java(APPS, "app");

    let mut controller = Pod::of(cluster, &release.namespace, NAME, Ports::free());
    controller.until_ready();

    until("the status of the Instrumentation counts the pod", LIMIT, || {
        let found = cluster.find_in(APPS, "instrumentation", "default")?;
        let pods = &found["status"]["pods"];
        (pods["matched"] == 1 && pods["injected"] == 1).then_some(())
    });
    let lease = cluster.find_in(&release.namespace, "lease", NAME).expect("a Lease of the name in the role");
    assert!(lease["spec"]["holderIdentity"].is_string(), "{lease}");
    let account = format!("--as=system:serviceaccount:{}:{NAME}", release.namespace);
    let may = |args: &[&str]| cluster.plane.kubectl(&[&["auth", "can-i", &account], args].concat()).ok;
    assert!(may(&["list", "pods", "--all-namespaces"]));
    for refused in [
        &["get", "secrets", "--namespace", &*release.namespace][..],
        &["patch", "deployments.apps", "--namespace", APPS],
        &["patch", "instrumentations.opentelemetry.io", "--namespace", APPS],
        &["delete", "pods", "--namespace", APPS],
        &["patch", "leases.coordination.k8s.io/other", "--namespace", &*release.namespace],
    ] {
        assert!(!may(refused), "{refused:?}");
    }
}
