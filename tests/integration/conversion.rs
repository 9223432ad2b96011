//! The endpoint for conversions, by HTTP.

use hyper::StatusCode;
use otel_webhook_inject::Settings;
use otel_webhook_testkit::objects::{instrumentation, usual_spec};
use serde_json::{Value, json};

use crate::routes::Webhook;

const CONVERT: &str = "/convert";
const ALPHA: &str = "opentelemetry.io/v1alpha1";
const BETA: &str = "opentelemetry.io/v1beta1";

fn webhook() -> Webhook {
    Webhook::new(&[], Settings::default())
}

fn review(to: &str, objects: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "u-1", "desiredAPIVersion": to, "objects": objects},
    })
}

async fn converted(webhook: &Webhook, to: &str, objects: &[Value]) -> Vec<Value> {
    let response = webhook.response(CONVERT, &review(to, objects)).await;
    assert_eq!(response["result"], json!({"status": "Success"}), "{response}");
    response["convertedObjects"].as_array().expect("a list").clone()
}

async fn failure(webhook: &Webhook, review: Value) -> String {
    let response = webhook.response(CONVERT, &review).await;
    assert_eq!(response["result"]["status"], "Failure", "{response}");
    assert!(response.get("convertedObjects").is_none(), "{response}");
    response["result"]["message"].as_str().expect("a message").to_owned()
}

#[tokio::test]
async fn objects_go_to_the_other_version_and_back() {
    let webhook = webhook();
    let objects = [instrumentation("one", usual_spec()), instrumentation("two", json!({}))];
    let there = converted(&webhook, BETA, &objects).await;
    let endpoint = there[0].pointer("/spec/envConfig/exporter/endpoint");
    assert_eq!((&there[0]["apiVersion"], endpoint), (&json!(BETA), Some(&json!("http://collector:4317"))));
    assert_eq!(converted(&webhook, BETA, &there).await, there, "they are of the version already");
    assert_eq!(converted(&webhook, ALPHA, &there).await, objects);
    assert_eq!(converted(&webhook, ALPHA, &[]).await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_thousand_objects_are_converted_in_one_review() {
    // Together they are larger than the review of one object may be.
    let of = |number| {
        let mut object = instrumentation(&format!("order-{number}"), usual_spec());
        object["metadata"]["annotations"] = json!({"note": "n".repeat(10_000)});
        object
    };
    let objects: Vec<_> = (0..1000).map(of).collect();
    let there = converted(&webhook(), BETA, &objects).await;
    assert_eq!(there.len(), 1000);
    let is_same = |(one, other): (&Value, &Value)| one["metadata"]["name"] == other["metadata"]["name"];
    assert!(there.iter().zip(&objects).all(is_same));
}

#[tokio::test]
async fn what_cannot_be_converted_is_named_and_nothing_else_is() {
    let webhook = webhook();
    let good = instrumentation("good", usual_spec());
    let with = |pointer: &str, value: Value| {
        let mut object = instrumentation("bad", usual_spec());
        *object.pointer_mut(pointer).expect("a field") = value;
        object
    };
    let message = failure(&webhook, review("opentelemetry.io/v2", std::slice::from_ref(&good))).await;
    let expected = "request.desiredAPIVersion: \"opentelemetry.io/v2\" is not supported; valid: opentelemetry.io/v1alpha1, \
         opentelemetry.io/v1beta1";
    assert_eq!(message, expected);
    for (object, words) in [
        (with("/kind", json!("OpenTelemetryCollector")), ["(OpenTelemetryCollector shop/bad)", "kind"]),
        (
            with("/apiVersion", json!("opentelemetry.io/v2")),
            ["(Instrumentation shop/bad)", "opentelemetry.io/v2"],
        ),
        (json!("text"), ["request.objects[1]", "object"]),
        (
            with("/metadata/name", json!("n".repeat(4 * 1024 * 1024))),
            ["request.objects[1]", "at most 3145728 are valid"],
        ),
    ] {
        let message = failure(&webhook, review(BETA, &[good.clone(), object])).await;
        assert!(message.starts_with("request.objects[1]") && message.len() < 2000, "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    let mut no_list = review(BETA, &[]);
    no_list["request"]["objects"] = json!({"a": 1});
    assert!(failure(&webhook, no_list).await.starts_with("request.objects: "));
}

#[tokio::test]
async fn what_is_no_review_has_no_response() {
    let webhook = webhook();
    let changed = |pointer: &str, value: Value| {
        let mut review = review(BETA, &[]);
        *review.pointer_mut(pointer).expect("a field") = value;
        review.to_string()
    };
    for (body, reason) in [
        ("{".to_owned(), "the body is not a ConversionReview of apiextensions.k8s.io/v1: EOF"),
        (changed("/apiVersion", json!("apiextensions.k8s.io/v1beta1")), "valid: apiextensions.k8s.io/v1"),
        (
            changed("/kind", json!("AdmissionReview")),
            "kind: \"AdmissionReview\" is not supported; valid: ConversionReview",
        ),
        (changed("/request/uid", json!("")), "request.uid: is missing"),
    ] {
        let (status, text) = webhook.post(CONVERT, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
        let refusal: Value = serde_json::from_str(&text).expect("a Status");
        assert!(refusal["message"].as_str().is_some_and(|message| message.contains(reason)), "{text}");
    }
    let text = webhook.metrics.encode();
    let line = "otel_webhook_reviews_total{endpoint=\"/convert\",outcome=\"Malformed\"} 4\n";
    assert!(text.contains(line), "{text}");
}
