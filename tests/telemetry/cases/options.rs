//! The settings of a service stay, and work together with the agent.

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::service::{JAVA, Language, NODEJS, PYTHON, image};
use crate::stage::{Service, Stage, pod};

/// Options of the JVM that come from a `ConfigMap` (D1).
pub fn java_from_config_map(cluster: &Cluster) {
    let stage = Stage::new(cluster, "options-java-from");
    stage.object("ConfigMap", "jvm", &[("options", "-Dgreeting=hello")]);
    let from = json!({"configMapKeyRef": {"name": "jvm", "key": "options"}});
    let (_service, answer) =
        with_variable(&stage, JAVA, json!({"name": "JAVA_TOOL_OPTIONS", "valueFrom": from}));
    assert_eq!(answer, "java hello");
}

/// An agent of somebody else, and ours.
pub fn two_javaagents(cluster: &Cluster) {
    let stage = Stage::new(cluster, "options-two-javaagents");
    let own = json!({"name": "JAVA_TOOL_OPTIONS", "value": "-javaagent:/app/second.jar=its-own"});
    let (service, _) = with_variable(&stage, JAVA, own);
    service.running.played.wait_for(&["second agent runs with its-own"]);
}

/// An extension of the agent marks each span.
pub fn extension(cluster: &Cluster) {
    let stage = Stage::new(cluster, "options-extension");
    let extensions = json!([{"image": image("extension"), "dir": "/extensions"}]);
    stage.instrumentation("default", json!({"java": {"extensions": extensions}}));
    let service = Service::new(JAVA, stage.create(pod(JAVA, "default", &[])));
    stage.ask(&service, "orders");
    stage.collector.wait("a span", |received| (!received.spans.is_empty()).then_some(()));
    for span in &stage.collector.received().spans {
        assert_eq!(span.attributes().get("marked.by").map(String::as_str), Some("extension"));
    }
}

/// A module that the service's own options require.
pub fn node_options(cluster: &Cluster) {
    let stage = Stage::new(cluster, "options-nodejs");
    let own = json!({"name": "NODE_OPTIONS", "value": "--require /app/own.js"});
    let (_service, answer) = with_variable(&stage, NODEJS, own);
    assert_eq!(answer, "nodejs by its own NODE_OPTIONS");
}

/// A module that only the service's own path finds.
pub fn python_path(cluster: &Cluster) {
    let stage = Stage::new(cluster, "options-python");
    let (_service, answer) =
        with_variable(&stage, PYTHON, json!({"name": "PYTHONPATH", "value": "/app/own"}));
    assert_eq!(answer, "python by its own PYTHONPATH");
}

/// A service with its own variable: what it answers, once a span of that has arrived.
fn with_variable(stage: &Stage<'_>, language: Language, variable: Value) -> (Service, String) {
    stage.instrumentation("default", json!({}));
    let mut pod = pod(language, "default", &[]);
    pod["spec"]["containers"][0]["env"].as_array_mut().expect("variables").push(variable);
    let service = Service::new(language, stage.create(pod));
    let answer = stage.ask(&service, "orders");
    stage
        .collector
        .wait("a span of the service", |received| (!received.served(language.name).is_empty()).then_some(()));
    (service, answer)
}

/// `spec.env`, the language's and the container's own, each where nothing goes before it.
pub fn precedence(cluster: &Cluster) {
    let stage = Stage::new(cluster, "options-precedence");
    let named = |name: &str| json!([{"name": "OTEL_SERVICE_NAME", "value": name}]);
    stage.instrumentation(
        "default",
        json!({
            "env": named("of-all"),
            "java": {"env": named("of-language")}, "nodejs": {"env": named("of-language")},
        }),
    );
    let services = [
        (JAVA, "of-container", vec![("OTEL_SERVICE_NAME", "of-container")]),
        (NODEJS, "of-language", vec![]),
        (PYTHON, "of-all", vec![]),
    ]
    .map(|(language, name, env)| {
        (Service::new(language, stage.create(pod(language, "default", &env))), name)
    });
    for (service, name) in services {
        stage.ask(&service, "orders");
        stage.collector.wait(&format!("a span of {name}"), |received| {
            let spans = received.served(name);
            let of_language = |span: &&crate::received::Item| {
                span.resource["telemetry.sdk.language"] == service.language.name
            };
            spans.iter().any(of_language).then_some(())
        });
    }
    let received = stage.collector.received();
    assert!(
        received.spans.iter().all(|span| ["of-container", "of-language", "of-all"].contains(&span.service()))
    );
}
