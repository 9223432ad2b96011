//! Instrumentations as the API server keeps them by our CRD.

use otel_webhook_testkit::cluster::created::{AGENT, Created};
use serde_json::{Value, json};

use crate::cluster::{Cluster, java};

/// What an API server sent of an Instrumentation that was made for the operator.
const CAPTURED: &str = include_str!("../../data/captured/instrumentation-create.json");

pub fn kept(cluster: &Cluster) {
    let review: Value = serde_json::from_str(CAPTURED).expect("JSON");
    let captured = &review["request"]["object"];
    let namespace = captured["metadata"]["namespace"].as_str().expect("a namespace");
    let name = captured["metadata"]["name"].as_str().expect("a name");
    cluster.namespace(namespace, &[]);
    cluster.instrumentation(namespace, name, &captured["spec"]);
    let stored = cluster.get(namespace, &["instrumentation", name]);
    assert_eq!(stored["spec"], captured["spec"]);

    cluster.instrumentation(namespace, "as-the-operator-stores-it", &defaulted());
    let stored = cluster.get(namespace, &["otelinst", "as-the-operator-stores-it"]);
    assert_eq!(stored["spec"], defaulted());
}

/// With defaults, and with the hollow objects that the operator writes.
fn defaulted() -> Value {
    let hollow = json!({"metadata": {}, "spec": {"resources": {}}});
    let resources =
        json!({"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": 0, "memory": "64.5Mi"}});
    let reference = json!({"secretKeyRef": {"name": "s", "key": "k", "optional": true}});
    let agent = json!({
        "image": "i", "volumeClaimTemplate": hollow, "resourceRequirements": resources, "volumeLimitSize": "1Gi",
        "env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": reference}],
    });
    let mut java = agent.clone();
    java.as_object_mut().expect("an object").remove("resourceRequirements");
    java["resources"] = resources;
    java["extensions"] = json!([{"image": "i", "dir": "/d"}]);
    let mut apache = agent.clone();
    apache["attrs"] = json!([{"name": "n", "value": "v"}]);
    apache["version"] = "2.4".into();
    apache["configPath"] = "/usr/local/apache2/conf".into();
    json!({
        "exporter": {
            "endpoint": "https://collector:4317",
            "tls": {"secretName": "s", "configMapName": "c", "ca_file": "a", "cert_file": "b", "key_file": "k"},
        },
        "resource": {"resourceAttributes": {"a": "b"}, "addK8sUIDAttributes": true},
        "propagators": ["tracecontext", "baggage"],
        "sampler": {"type": "parentbased_traceidratio", "argument": "0.25"},
        "defaults": {"useLabelsForResourceAttributes": true},
        "env": [{"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "imagePullPolicy": "IfNotPresent",
        "initContainerSecurityContext": {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}},
        "java": java, "nodejs": agent, "python": agent, "dotnet": agent, "go": agent, "apacheHttpd": apache,
    })
}

pub fn changed(cluster: &Cluster) {
    let namespace = "changed";
    cluster.instrumented_namespace(namespace);
    let image = "registry.example.com/agents/java:next";
    let spec = json!({"java": {"image": image}, "env": [{"name": "ADDED", "value": "later"}]});
    cluster.instrumentation(namespace, "default", &spec);
    let is_new = |pod: &Created| pod.container(AGENT)["image"] == image;
    let pod = cluster.create_when("the change is known", namespace, &java("next"), is_new);
    assert_eq!(pod.variable("app", "ADDED"), "later");

    cluster.plane.kubectl(&["delete", "--namespace", namespace, "instrumentation", "default"]);

    let none = |pod: &Created| pod.warnings.contains("there is no Instrumentation in namespace \"changed\"");
    let pod = cluster.create_when("the removal is known", namespace, &java("last"), none);
    assert!(pod.is_untouched(), "{}", pod.pod);
}
