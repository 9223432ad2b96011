//! The resources and claims of agents that an Instrumentation describes itself.

use otel_webhook_testkit::{
    objects::{instrumentation, limit_range, pod},
    surroundings::{Injected, Surroundings},
};
use serde_json::{Value, json};

const NAME: &str = "opentelemetry-auto-instrumentation-agent-php";

fn spec() -> Value {
    json!({"agents": [{"name": "php", "image": "own/php:1", "directory": "/opt/agent"}]})
}

/// A pod of a container that opts in to these agents.
fn opted_in(agents: &str, container: Value) -> Value {
    let mut app = json!({"name": "app", "image": "example.com/app:1"});
    json_patch::merge(&mut app, &container);
    pod(&[("inject-agent", agents)], json!({"containers": [app]}))
}

fn sentences(injected: &Injected) -> Vec<String> {
    injected.outcome.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn its_init_container_fits_as_those_of_languages() {
    let bounds = limit_range(&json!({"type": "Container", "max": {"memory": "32Mi"}}));
    let mut around = Surroundings::new([instrumentation("inst", spec()), bounds]);
    around.settings.init_resources = otel_webhook_inject::InitResources::Neutral;
    let small = json!({"resources": {"limits": {"memory": "32Mi", "cpu": "1"}, "requests": {"memory": "32Mi", "cpu": "1"}}});
    let fitted = around.inject(&opted_in("php", small));
    assert_eq!(fitted.codes(), ["agent:php/app: Injected"]);
    let memory = &fitted.container(NAME).expect("the init container")["resources"]["limits"]["memory"];
    assert_eq!(memory, "32Mi");
    let claims = json!({"name": "php", "image": "own/php:1", "directory": "/opt/agent", "volumeClaimTemplate":
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}});
    let claim = limit_range(&json!({"type": "PersistentVolumeClaim", "max": {"storage": "1Mi"}}));
    let refused = Surroundings::new([instrumentation("inst", json!({"agents": [claims]})), claim]);
    let refused = refused.inject(&opted_in("php", json!({})));
    assert_eq!(refused.codes(), ["agent:php: ClaimRejected"]);
    let sentence = &sentences(&refused)[0];
    assert!(sentence.contains("the claim of spec.agents[php].volumeClaimTemplate"), "{sentence}");
}
