//! The endpoint for workloads, by HTTP.

use otel_webhook_inject::Settings;
use otel_webhook_testkit::objects::instrumentation;
use serde_json::{Value, json};

use crate::routes::{Webhook, review};

/// The warnings in the response to a review of an object, which is allowed.
async fn warnings(operation: &str, object: &Value) -> Value {
    let stored = [instrumentation("order", json!({}))];
    let webhook =
        Webhook::adjusted(&stored, Settings::default(), |admission| admission.with_preview_warnings(true));
    let review = review(operation, "deployments.apps", object, &Value::Null);
    let mut response = webhook.response("/validate-workloads", &review).await;
    assert_eq!(response["allowed"], true);
    response["warnings"].take()
}

fn deployment(annotations: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "order", "namespace": "shop"},
        "spec": {"template": {
            "metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "order"}]},
        }},
    })
}

#[tokio::test]
async fn whoever_applies_a_workload_hears_what_its_pods_will_get() {
    let asks = deployment(&json!({"instrumentation.opentelemetry.io/inject-java": "true"}));
    let preview =
        json!(["otel-webhook: Deployment order: will be injected: java from shop/order into order"]);
    for (operation, expected) in [("CREATE", &preview), ("UPDATE", &preview), ("DELETE", &Value::Null)] {
        assert_eq!(warnings(operation, &asks).await, *expected, "{operation}");
    }
}

#[tokio::test]
async fn whatever_comes_is_allowed() {
    for object in [Value::Null, json!(1), json!([]), json!({}), json!({"kind": "Deployment", "metadata": 3})]
    {
        assert_eq!(warnings("CREATE", &object).await, Value::Null, "{object}");
    }
}
