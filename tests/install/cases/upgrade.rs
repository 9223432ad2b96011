//! From an earlier version to the present one and back, chart and program, while pods are created all the time.
//! `release/test-upgrade` runs it: it builds the earlier version.

use std::path::PathBuf;

use otel_webhook_testkit::cluster::proxy::Proxy;
use serde_json::json;

use crate::cluster::Cluster;
use crate::helm::{CHART, Release};
use crate::pod::{Pod, Ports, program};

/// The folder with the earlier version: `otel-webhook` and `chart`. Without it there is nothing to upgrade from.
pub fn earlier() -> Option<PathBuf> {
    std::env::var_os("OTEL_WEBHOOK_EARLIER").map(PathBuf::from)
}

pub fn there_and_back(cluster: &Cluster) {
    let earlier = earlier().expect("the case runs only with it");
    let old_chart = earlier.join("chart").display().to_string();
    let old = (old_chart.as_str(), earlier.join("otel-webhook"));
    let new = (CHART, program());
    let mut ports = Ports::free();
    // Stands for the Service of the Deployment.
    let switch = Proxy::start(ports.webhook);
    let values = json!({
        "registration": {"url": format!("https://localhost:{}", switch.port())},
        "certificates": {"extraNames": ["localhost"]},
    });
    let release = Release::new(cluster, "helm4", "upgraded-release");
    cluster.namespace("upgraded-apps");
    release.install_chart(old.0, &values);
    let mut pod = Pod::start_program(cluster, &release.namespace, ports, old.1.clone());
    cluster.instrumentation("upgraded-apps");
    cluster.until_injected("upgraded-apps");

    cluster.during_traffic("upgraded-apps", |traffic| {
        for (chart, program) in [new, old] {
            // The earlier pod serves with the objects of the later chart for a while, and the other way round.
            release.upgrade_to(chart, &values);
            traffic.goes_on();
            ports = Ports::free();
            let next = Pod::start_program(cluster, &release.namespace, ports, program);
            switch.to(ports.webhook);
            traffic.goes_on();
            // Ended by SIGTERM, as a kubelet does; it answers what it has on its way.
            drop(std::mem::replace(&mut pod, next));
            traffic.goes_on();
        }
    });
    release.uninstall();
}
