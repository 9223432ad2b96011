//! Differences in what init containers ask for.

use otel_webhook::inject::InitResources;
use serde_json::{Value, json};

use crate::support::{Surroundings, asking, instrumentation};

/// Resources of Java's init container beside a container with these.
fn resources(way: InitResources, own: Value) -> Value {
    let mut around = Surroundings::new([instrumentation("inst", json!({}))]);
    around.settings.init_resources = way;
    let injected = around.inject(&asking(&["java"], json!({"resources": own})));
    injected.container("opentelemetry-auto-instrumentation-java").expect("injected")["resources"].clone()
}

#[test]
fn d23_init_containers_change_neither_the_request_nor_the_class() {
    let exact = resources(InitResources::Exact, json!({}));
    assert_eq!(exact["requests"], json!({"cpu": "50m", "memory": "64Mi"}), "as the operator does");
    let neutral = |own| resources(InitResources::Neutral, own);
    assert_eq!(neutral(json!({})), json!({"limits": {}, "requests": {}}), "a BestEffort pod stays one");
    let limits = json!({"cpu": "100m", "memory": "200Mi"});
    let guaranteed = neutral(json!({"limits": limits}));
    assert_eq!(guaranteed, json!({"limits": limits, "requests": limits}), "a Guaranteed pod stays one");
    let burstable = neutral(json!({"requests": {"cpu": "20m"}}));
    assert_eq!(burstable["requests"], json!({"cpu": "20m", "memory": "0"}));
    assert_eq!(burstable["limits"], exact["limits"]);
}
