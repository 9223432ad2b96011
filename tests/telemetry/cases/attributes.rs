//! Each span, metric and log record is of the resource that the injected variables say.

use std::collections::BTreeMap;

use serde_json::json;

use crate::cluster::Cluster;
use crate::service::{LANGUAGES, VERSION};
use crate::stage::{Running, Service, Stage, pod};

/// The attributes of a resource.
type Attributes = BTreeMap<String, String>;

/// A value that every part of the way could take apart.
const INTRICATE: &str = "a, b = 5% c";

/// Every language, by a Deployment, with an Instrumentation that says nothing of resources.
pub fn usual(cluster: &Cluster) {
    let stage = Stage::new(cluster, "attributes-usual");
    stage.instrumentation("default", json!({}));
    let services = LANGUAGES.map(|language| {
        let running = stage.deploy(&format!("{}-service", language.name), pod(language, "true", &[]));
        Service::new(language, running)
    });
    for service in services {
        let name = format!("{}-service", service.language.name);
        assert_resources(&stage, &service, &expected(&stage, &service.running, &name));
    }
}

/// What a Deployment's pod has without any setting.
pub fn expected(stage: &Stage<'_>, running: &Running, service: &str) -> Attributes {
    let name = running.stored.name();
    let owner = running.stored.pod["metadata"]["ownerReferences"][0]["name"].as_str().expect("an owner");
    let instance = format!("{}.{name}.app", stage.namespace);
    attributes([
        ("k8s.container.name", "app"),
        ("k8s.deployment.name", service),
        ("k8s.namespace.name", stage.namespace),
        ("k8s.node.name", "node-1"),
        ("k8s.pod.name", name),
        ("k8s.replicaset.name", owner),
        ("service.instance.id", &instance),
        ("service.name", service),
        ("service.namespace", stage.namespace),
        ("service.version", VERSION),
    ])
}

/// UIDs, attributes of the Instrumentation, of the pod and of the container itself.
pub fn set(cluster: &Cluster) {
    let stage = Stage::new(cluster, "attributes-set");
    let resource = json!({
        "addK8sUIDAttributes": true,
        "resourceAttributes": {"of.instrumentation": INTRICATE, "of.both": "instrumentation"},
    });
    stage.instrumentation("default", json!({"resource": resource}));
    let annotations = [
        ("of.pod", INTRICATE),
        ("of.both", "pod"),
        ("service.name", "shop-front"),
        ("service.namespace", "shop"),
        ("service.version", "2.0"),
        ("service.instance.id", "the-one"),
    ];
    let services = LANGUAGES.map(|language| {
        let mut pod =
            pod(language, "true", &[("OTEL_RESOURCE_ATTRIBUTES", "of.container=its own,of.node=1")]);
        for (key, value) in annotations {
            let value =
                if key == "service.name" { format!("{value}-{}", language.name) } else { value.to_owned() };
            pod["metadata"]["annotations"][format!("resource.opentelemetry.io/{key}")] = value.into();
        }
        Service::new(language, stage.deploy(&format!("{}-service", language.name), pod))
    });
    for service in services {
        let name = format!("{}-service", service.language.name);
        let mut wanted = expected(&stage, &service.running, &name);
        let metadata = &service.running.stored.pod["metadata"];
        let uid = |object: &serde_json::Value| object["uid"].as_str().expect("a UID").to_owned();
        let deployment = stage.cluster.get(stage.namespace, &["deployment", &name]);
        wanted.extend(attributes([
            ("k8s.deployment.uid", &uid(&deployment["metadata"])),
            ("k8s.pod.uid", &uid(metadata)),
            ("k8s.replicaset.uid", &uid(&metadata["ownerReferences"][0])),
            ("of.both", "pod"),
            ("of.container", "its own"),
            ("of.instrumentation", INTRICATE),
            ("of.node", "1"),
            ("of.pod", INTRICATE),
            ("service.instance.id", "the-one"),
            ("service.name", &format!("shop-front-{}", service.language.name)),
            ("service.namespace", "shop"),
            ("service.version", "2.0"),
        ]));
        assert_resources(&stage, &service, &wanted);
    }
}

/// Everything that the service sends is of exactly this resource, but for what the agent finds out by itself.
pub fn assert_resources(stage: &Stage<'_>, service: &Service, expected: &Attributes) {
    stage.ask(service, "orders");
    let name = &expected["service.name"];
    stage
        .collector
        .wait(&format!("all telemetry of {name}"), |received| received.has_all(name).then_some(()));
    let expected: BTreeMap<_, _> =
        expected.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let received = stage.collector.received();
    for (signal, items) in received.signals() {
        for item in items.iter().filter(|item| item.service() == name) {
            assert_eq!(item.configured(), expected, "{signal} of {name}");
        }
    }
}

fn attributes<const N: usize>(pairs: [(&str, &str); N]) -> Attributes {
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}
