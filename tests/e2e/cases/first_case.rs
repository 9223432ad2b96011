//! The case this product was started for.

use otel_webhook_testkit::{
    cluster::created::{AGENT, Created},
    objects::items,
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::{Cluster, LIMIT, java};

const MANIFESTS: &str = include_str!("../../data/first-case.yaml");
const EXTENSION: &str = "opentelemetry-auto-instrumentation-extension-0";
const IMAGE: &str = "autoinstrumentation-java:2.4.0-release";

pub fn deployment(cluster: &Cluster) {
    let (before, deployment) = MANIFESTS.rsplit_once("\n---\n").expect("documents");
    cluster.namespace("test", &[]);
    cluster.plane.apply(before);
    let mut probe = java("probe");
    probe["metadata"]["labels"] = json!({"app": "order"});
    until("the Instrumentation is known", LIMIT, || {
        cluster.dry_run("test", &probe).is_injected().then_some(())
    });
    cluster.plane.apply(deployment);

    let pod = &cluster.pods_of("test", "app=order", 1)[0];

    assert_eq!(pod.init_containers(), [AGENT, EXTENSION]);
    init_containers(pod);
    volume_and_mount(pod);
    variables(pod);
    stamp_and_log(cluster, pod);
}

fn init_containers(pod: &Created) {
    let mounts = json!([{"name": AGENT, "mountPath": "/otel-auto-instrumentation-java"}]);
    let agent = json!(["cp", "-f", "/javaagent.jar", "/otel-auto-instrumentation-java/javaagent.jar"]);
    let extension = json!(["cp", "-rf", "/extensions/.", "/otel-auto-instrumentation-java/extensions"]);
    for (name, command) in [(AGENT, agent), (EXTENSION, extension)] {
        let container = pod.container(name);
        assert_eq!(container["image"], IMAGE);
        assert_eq!(container["command"], command);
        assert_eq!(own_mounts(container), mounts);
        // The pod asks for nothing and stays BestEffort.
        assert_eq!(container["resources"], json!({}));
    }
}

fn volume_and_mount(pod: &Created) {
    let volume = items(&pod.pod["spec"]["volumes"]).find(|volume| volume["name"] == AGENT);
    assert_eq!(volume, Some(&json!({"name": AGENT, "emptyDir": {"sizeLimit": "200Mi"}})));
    let mounts = json!([{"name": AGENT, "mountPath": "/otel-auto-instrumentation-java-order"}]);
    assert_eq!(own_mounts(pod.container("order")), mounts);
}

/// The mounts but for the service account's, which the API server adds to each container.
fn own_mounts(container: &Value) -> Value {
    let ours = items(&container["volumeMounts"])
        .filter(|mount| !mount["mountPath"].as_str().unwrap_or_default().starts_with("/var/run/secrets/"));
    ours.cloned().collect()
}

/// Complete and in order: the addresses, what the Instrumentation sets for
/// Java and for all, what Java needs, and what is derived.
fn variables(pod: &Created) {
    let field = |name: &str, path: &str| {
        let reference = json!({"apiVersion": "v1", "fieldPath": path});
        json!({"name": name, "valueFrom": {"fieldRef": reference}})
    };
    let value = |name: &str, value: &str| json!({"name": name, "value": value});
    let replica_set = items(&pod.pod["metadata"]["ownerReferences"]).next().expect("an owner");
    let attributes = format!(
        "service.name=order,k8s.container.name=order,k8s.deployment.name=order,k8s.namespace.name=test,\
         k8s.node.name=$(OTEL_RESOURCE_ATTRIBUTES_NODE_NAME),k8s.pod.name=$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME),\
         k8s.replicaset.name={},service.instance.id=test.$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME).order,\
         service.namespace=test,service.version=1.0.0",
        replica_set["name"].as_str().expect("a name"),
    );
    let options = " -javaagent:/otel-auto-instrumentation-java-order/javaagent.jar \
                   -Dotel.javaagent.extensions=/otel-auto-instrumentation-java-order/extensions";
    let expected = json!([
        field("OTEL_NODE_IP", "status.hostIP"),
        field("OTEL_POD_IP", "status.podIP"),
        value("OTEL_INSTRUMENTATION_MESSAGING_EXPERIMENTAL_RECEIVE_TELEMETRY_ENABLED", "true"),
        value("OTEL_TRACES_EXPORTER", "otlp"),
        value("OTEL_METRICS_EXPORTER", "otlp"),
        value("OTEL_LOGS_EXPORTER", "none"),
        value(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://open-telemetry-opentelemetry-collector.otel.svc.cluster.local:4317"
        ),
        value("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        value("OTEL_EXPERIMENTAL_EXPORTER_OTLP_RETRY_ENABLED", "true"),
        value("OTEL_SERVICE_NAME", "order"),
        value("JAVA_TOOL_OPTIONS", options),
        field("OTEL_RESOURCE_ATTRIBUTES_POD_NAME", "metadata.name"),
        field("OTEL_RESOURCE_ATTRIBUTES_NODE_NAME", "spec.nodeName"),
        value("OTEL_RESOURCE_ATTRIBUTES", &attributes),
    ]);
    assert_eq!(pod.container("order")["env"], expected, "{:#}", pod.container("order")["env"]);
}

/// The product says the same in its annotation, its label and its log.
fn stamp_and_log(cluster: &Cluster, pod: &Created) {
    assert_eq!(pod.pod["metadata"]["labels"]["otel-webhook/injected"], "true");
    let status = pod.status();
    assert!(status.contains("Injected") && status.contains("test/instrumentation-test-order"), "{status}");
    assert!(pod.message().starts_with("java in order: "), "{}", pod.message());
    let owner = items(&pod.pod["metadata"]["ownerReferences"]).next().expect("an owner");
    let owner = format!("ReplicaSet/{}", owner["name"].as_str().expect("a name"));
    let log = cluster.webhook.log();
    let line = log.iter().find(|line| line["owner"] == owner.as_str()).expect("a line for the owner");
    assert_eq!(line["namespace"], "test");
    assert_eq!(line["findings"], "java/order=Injected");
    assert_eq!(line["warned"], "java/order=PortContradictsProtocol");
}
