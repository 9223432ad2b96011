//! Agents that an Instrumentation describes itself, before a real API server that enforces `restricted`.

use otel_webhook_testkit::{cluster::created::Created, objects::items};
use serde_json::{Value, json};

use super::image_volumes::{harden, restricted};
use crate::audit;
use crate::cluster::{Cluster, asking};

const NAMESPACE: &str = "agents";
const NAME: &str = "opentelemetry-auto-instrumentation-agent-php";
const PATH: &str = "/otel-auto-instrumentation-php";

/// Copied, mounted, and not found.
pub fn named(cluster: &Cluster) {
    cluster.instrumented_namespace(NAMESPACE);
    cluster.apply(&restricted(NAMESPACE));
    cluster.instrumentation(NAMESPACE, "default", &json!({"agents": [php()]}));
    let has_agent = |pod: &Created| pod.init_containers() == [NAME];
    let copied = cluster.create_when("the agent is known", NAMESPACE, &pod("copied", "php"), has_agent);
    assert_eq!(copied.warnings, "");
    let command = json!(["cp", "-rf", "/opt/agent/.", PATH]);
    assert_eq!(copied.container(NAME)["command"], command);
    assert_eq!(copied.variable("app", "OTEL_PHP_AUTOLOAD_ENABLED"), "true");
    assert_eq!(copied.variable("app", "PHP_INI_SCAN_DIR"), format!("/own:{PATH}/conf.d"));
    assert_eq!(
        copied.variable("app", "LD_PRELOAD"),
        format!("{PATH}/a.so $(OTEL_INJECT_ORIGINAL_LD_PRELOAD)")
    );
    assert_eq!(audit::decision(cluster, NAMESPACE, "copied"), "agent:php/app=Injected");
    assert!(copied.status().contains(r#""language":"agent","agent":"php""#), "{}", copied.status());

    let mut mounted = pod("mounted", "php");
    mounted["metadata"]["annotations"]["otel-webhook/delivery"] = json!("imageVolume");
    let mounted = cluster.create(NAMESPACE, &mounted);
    assert_eq!((mounted.warnings.as_str(), mounted.init_containers()), ("", Vec::new()));
    let mut volumes = items(&mounted.pod["spec"]["volumes"]);
    let volume = volumes.find(|volume| volume["name"] == NAME).expect("the volume");
    assert_eq!(volume["image"]["reference"], "registry.example.com/agents/php:1");
    let mut mounts = items(&mounted.container("app")["volumeMounts"]);
    let mount = mounts.find(|mount| mount["name"] == NAME).expect("the mount");
    assert_eq!((&mount["mountPath"], &mount["subPath"]), (&json!(PATH), &json!("opt/agent")));

    let unknown = cluster.create(NAMESPACE, &pod("unknown", "pearl"));
    assert!(unknown.is_untouched(), "{}", unknown.pod);
    let told = "agent \"pearl\" not found in spec.agents of the Instrumentations that the pod may use; they have: php";
    assert!(unknown.warnings.contains(told), "{}", unknown.warnings);
    assert_eq!(audit::decision(cluster, NAMESPACE, "unknown"), "agent:pearl=AgentNotFound");
}

fn php() -> Value {
    json!({"name": "php", "image": "registry.example.com/agents/php:1", "directory": "/opt/agent", "env": [
        {"name": "OTEL_PHP_AUTOLOAD_ENABLED", "value": "true"},
        {"name": "PHP_INI_SCAN_DIR", "value": "$(mountPath)/conf.d", "mode": "append", "separator": ":"},
        {"name": "LD_PRELOAD", "value": "$(mountPath)/a.so", "mode": "prepend", "separator": " "},
    ]})
}

/// A pod that the strictest level accepts, with variables of its own.
fn pod(name: &str, agents: &str) -> Value {
    let mut pod = asking(name, &[("inject-agent", agents)]);
    harden(&mut pod);
    pod["spec"]["containers"][0]["env"] = json!([
        {"name": "PHP_INI_SCAN_DIR", "value": "/own"},
        {"name": "LD_PRELOAD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]);
    pod
}
