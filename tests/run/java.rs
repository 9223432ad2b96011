//! A JVM with the real agent.

use otel_webhook_api::defaults::JAVA;
use serde_json::{Value, json};

use crate::tmpfs::Tmpfs;
use crate::{deployment, image, inject, unique};
use otel_webhook_testkit::containers::played::Played;
use otel_webhook_testkit::containers::podman::{Network, home};

/// The options that the product sets for a container named `app`.
const AGENT: &str = " -javaagent:/otel-auto-instrumentation-java-app/javaagent.jar";

fn app(name: &str) -> Value {
    let command = json!(["/jre/bin/java", "-cp", "/app", "Main"]);
    let container = json!({"name": "app", "image": image("app"), "command": command});
    deployment(name, "java", container)
}

/// Traces go to the log, and everything else nowhere: there is nobody to send it to.
fn instrumentation(extensions: Value) -> Value {
    let variables = [
        ("OTEL_TRACES_EXPORTER", "logging-otlp"),
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_LOGS_EXPORTER", "none"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ];
    let env: Vec<_> = variables.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    json!({"env": env, "java": {"image": image("agent"), "extensions": extensions}})
}

fn version_line() -> String {
    let version = std::fs::read_to_string(home().join("agent-version")).expect("the agent's version");
    format!("opentelemetry-javaagent - version: {}", version.trim_end())
}

/// A resource attribute in a span that the agent wrote to the log.
fn attribute(key: &str, value: &str) -> String {
    json!({"key": key, "value": {"stringValue": value}}).to_string()
}

/// The agent and its extension are read from the images themselves.
#[test]
fn an_application_runs_with_an_agent_and_an_extension_that_are_mounted() {
    let name = unique("mounted");
    let mut spec = instrumentation(json!([{"image": image("extension"), "dir": "/extensions"}]));
    spec["delivery"] = json!("imageVolume");
    let documents = inject(&[app(&name)], &spec);
    let pod = &documents[0]["spec"]["template"]["spec"];
    assert!(pod.get("initContainers").is_none(), "{pod}");
    let pod = Played::start(documents, Network::None);
    let log = pod.wait_for(&[
        &version_line(),
        &format!("extension loaded for {name}"),
        &attribute("service.name", &name),
        &attribute("url.path", "/orders"),
        "answer=HTTP/1.1 204",
    ]);
    let folder = "/opentelemetry-auto-instrumentation-extension-0-app/extensions";
    let options = format!("{AGENT} -Dotel.javaagent.extensions={folder}");
    assert!(log.contains(&format!("Picked up JAVA_TOOL_OPTIONS: {options}\n")), "{log}");
}

/// The documented size is enough, and no more than that: the volume is a tmpfs of this size.
#[test]
fn the_agent_fits_into_a_volume_of_its_documented_size() {
    let name = unique("small");
    let volume = Tmpfs::of(&JAVA.size.to_string());
    let mut documents = inject(&[app(&name)], &instrumentation(json!([])));
    let volumes = documents[0]["spec"]["template"]["spec"]["volumes"].as_array_mut().expect("volumes");
    let agent = volumes.iter_mut().find(|volume| volume["name"] == "opentelemetry-auto-instrumentation-java");
    let agent = agent.expect("the agent's volume");
    assert!(agent["emptyDir"].is_object(), "{agent}");
    *agent = json!({"name": agent["name"], "hostPath": {"path": volume.path(), "type": "Directory"}});
    let pod = Played::start(documents, Network::None);
    pod.wait_for(&[&version_line(), &attribute("service.name", &name), "answer=HTTP/1.1 204"]);
    let left = volume.left();
    assert!(left < 1 << 20, "{left} bytes are left: the documented size is too large");
}
