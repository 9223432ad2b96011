//! Differences in how an agent gets into a pod.

use otel_webhook_api::Delivery;
use otel_webhook_testkit::{objects::asking, surroundings::with};
use serde_json::json;

const AGENT: &str = "opentelemetry-auto-instrumentation-java";
const NODE_NAME: &str = "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME";

#[test]
fn d35_the_image_of_an_agent_can_be_mounted_in_place_of_a_copy() {
    // The name of the node is known, so nothing refers to the variable.
    let spec =
        json!({"java": {"image": "own:1"}, "resource": {"resourceAttributes": {"k8s.node.name": "n"}}});
    let mut around = with(spec);
    let pod = asking(&["java"], json!({}));
    let copied = around.inject(&pod);
    assert_eq!(copied.names("initContainers"), [AGENT], "as the operator does");
    assert!(copied.position("app", NODE_NAME).is_none(), "the operator knows it by the init container");

    around.settings.delivery = Delivery::ImageVolume;
    let mounted = around.inject(&pod);
    assert_eq!(mounted.names("initContainers"), [""; 0]);
    assert_eq!(mounted.pod["spec"]["volumes"], json!([{"name": AGENT, "image": {"reference": "own:1"}}]));
    assert!(mounted.position("app", NODE_NAME).is_some(), "the operator knows it by this variable (D29)");
}
