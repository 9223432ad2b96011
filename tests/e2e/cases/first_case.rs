//! The case this product was started for. The conformance cases of `crates/inject` show each variable of such a pod.

use otel_webhook_testkit::{
    cluster::created::{AGENT, Created},
    objects::items,
    until::until,
};

use crate::cluster::{Cluster, LIMIT, java};

const MANIFESTS: &str = include_str!("../../data/first-case.yaml");
const EXTENSION: &str = "opentelemetry-auto-instrumentation-extension-0";
const OPTIONS: &str = " -javaagent:/otel-auto-instrumentation-java-order/javaagent.jar \
                       -Dotel.javaagent.extensions=/otel-auto-instrumentation-java-order/extensions";

pub fn deployment(cluster: &Cluster) {
    let (before, deployment) = MANIFESTS.rsplit_once("\n---\n").expect("documents");
    cluster.namespace("test", &[]);
    cluster.plane.apply(before);
    let mut probe = java("probe");
    probe["metadata"]["labels"]["app"] = "order".into();
    until("the Instrumentation is known", LIMIT, || {
        cluster.dry_run("test", &probe).is_injected().then_some(())
    });
    cluster.plane.apply(deployment);

    let pod = &cluster.pods_of("test", "app=order", 1)[0];

    assert_eq!(pod.init_containers(), [AGENT, EXTENSION]);
    assert_eq!(pod.variable("order", "JAVA_TOOL_OPTIONS"), OPTIONS);
    assert_eq!(pod.attribute("order", "k8s.deployment.name"), "order");
    assert_eq!(pod.attribute("order", "service.version"), "1.0.0");
    stamp_and_log(cluster, pod);
}

/// The product reports the same in its annotation, its label and its log.
fn stamp_and_log(cluster: &Cluster, pod: &Created) {
    assert_eq!(pod.pod["metadata"]["labels"]["otel-webhook/injected"], "true");
    let status = pod.status();
    assert!(status.contains("Injected") && status.contains("test/instrumentation-test-order"), "{status}");
    assert!(pod.message().starts_with("java in order: "), "{}", pod.message());
    let owner = items(&pod.pod["metadata"]["ownerReferences"]).next().expect("an owner");
    let owner = owner["name"].as_str().expect("a name");
    assert_eq!(pod.attribute("order", "k8s.replicaset.name"), owner);
    let log = cluster.webhook.log();
    let line =
        log.iter().find(|line| line["owner"] == format!("ReplicaSet/{owner}")).expect("a line for the owner");
    assert_eq!(line["namespace"], "test");
    assert_eq!(line["findings"], "java/order=Injected");
    assert_eq!(line["warned"], "java/order=PortContradictsProtocol");
}
