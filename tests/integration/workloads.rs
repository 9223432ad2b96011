//! The endpoint for workloads, by HTTP.

use std::sync::Arc;

use axum::{Router, body::Body, http::Request};
use http_body_util::BodyExt;
use otel_webhook::{admission::Admission, server::webhook_router, store::Writer, telemetry::Metrics};
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::Settings;
use otel_webhook_testkit::objects::instrumentation;
use serde_json::{Value, json};
use tower::ServiceExt;

fn router() -> Router {
    let mut writer = Writer::new(DefaultImages::default());
    writer.put(&instrumentation("order", json!({})));
    writer.publish();
    let metrics = Arc::new(Metrics::new());
    let admission = Admission::new(writer.store(), Settings::default(), None, Arc::clone(&metrics));
    webhook_router(Arc::new(admission.with_preview_warnings(true)), metrics)
}

/// The response to a review of an object, without its uid.
async fn response(operation: &str, object: Value) -> Value {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u-1", "operation": operation, "namespace": "shop", "object": object},
    });
    let request = Request::post("/validate-workloads")
        .header("content-type", "application/json")
        .body(Body::from(review.to_string()));
    let response = router().oneshot(request.expect("a request")).await.expect("an answer");
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let mut review: Value = serde_json::from_slice(&body).expect("a review");
    assert_eq!(review["response"]["uid"].take(), "u-1");
    assert_eq!(review["response"]["allowed"], true);
    review["response"]["warnings"].take()
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
    assert_eq!(response("CREATE", asks.clone()).await, preview);
    assert_eq!(response("UPDATE", asks.clone()).await, preview);
    assert_eq!(response("DELETE", asks).await, Value::Null);
    let misspelled = deployment(&json!({"instrumentation.opentelemetry.io/inject-jva": "true"}));
    let warning = "otel-webhook: Deployment order: unknown annotation instrumentation.opentelemetry.io/inject-jva \
        (did you mean \"inject-java\"?); set instrumentation.opentelemetry.io/inject-java: \"true\" in \
        spec.template.metadata.annotations";
    assert_eq!(response("CREATE", misspelled).await, json!([warning]));
}

#[tokio::test]
async fn whatever_comes_is_let_in() {
    for object in [Value::Null, json!(1), json!([]), json!({}), json!({"kind": "Deployment", "metadata": 3})]
    {
        assert_eq!(response("CREATE", object.clone()).await, Value::Null, "{object}");
    }
}
