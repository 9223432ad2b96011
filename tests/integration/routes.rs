//! The webhook's routes in this process, without a connection.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use http_body_util::BodyExt;
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::Settings;
use otel_webhook_server::{admission::Admission, webhook_router};
use otel_webhook_store::Writer;
use otel_webhook_telemetry::Metrics;
use otel_webhook_testkit::objects::NAMESPACE;
use serde_json::{Value, json};
use tower::ServiceExt;

/// The path for pods.
pub const PODS: &str = "/mutate-v1-pod";

/// The routes, and what they count.
pub struct Webhook {
    router: Router,
    pub metrics: Arc<Metrics>,
}

impl Webhook {
    /// With these objects in the store.
    pub fn new(objects: &[Value], settings: Settings) -> Self {
        Self::adjusted(objects, settings, |admission| admission)
    }

    pub fn adjusted(
        objects: &[Value],
        settings: Settings,
        adjust: impl FnOnce(Admission) -> Admission,
    ) -> Self {
        let mut writer = Writer::new(DefaultImages::default());
        for object in objects {
            writer.put(object);
        }
        writer.publish();
        let metrics = Arc::new(Metrics::new());
        let admission = adjust(Admission::new(writer.store(), settings, None, Arc::clone(&metrics)));
        Self { router: webhook_router(Arc::new(admission), Arc::clone(&metrics)), metrics }
    }

    pub async fn post(&self, path: &str, body: String) -> (StatusCode, String) {
        let request = Request::post(path).header("content-type", "application/json").body(Body::from(body));
        let response = self.router.clone().oneshot(request.expect("a request")).await.expect("an answer");
        let status = response.status();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        (status, String::from_utf8(body.to_vec()).expect("text"))
    }

    /// The response to a review.
    pub async fn response(&self, path: &str, review: &Value) -> Value {
        let (status, text) = self.post(path, review.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        let mut answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(answer["response"]["uid"], review["request"]["uid"]);
        answer["response"].take()
    }
}

/// A review of an object of the usual namespace; `resource` is the plural with the group, as in `deployments.apps`.
pub fn review(operation: &str, resource: &str, object: &Value, old: &Value) -> Value {
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let version = if group == "opentelemetry.io" { "v1alpha1" } else { "v1" };
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": operation, "name": "order", "namespace": NAMESPACE,
            "resource": {"group": group, "version": version, "resource": resource},
            "object": object, "oldObject": old,
        },
    })
}

/// A review of a new object.
pub fn create(resource: &str, object: &Value) -> Value {
    review("CREATE", resource, object, &Value::Null)
}

/// An object after the patch of a response.
pub fn patched(object: &Value, response: &Value) -> Value {
    let mut object = object.clone();
    if let Some(patch) = response["patch"].as_str() {
        assert_eq!(response["patchType"], "JSONPatch");
        let patch = BASE64_STANDARD.decode(patch).expect("base64");
        let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("operations");
        json_patch::patch(&mut object, &patch).expect("the patch applies");
    }
    object
}
