//! One review over HTTP: reads the request, calls `admission` and writes the response.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use super::body;
use super::body_memory::{BodyLimits, BodyMemory, Held};
use super::deadline::Deadline;
use super::endpoint::Endpoint;
use super::refusal::{JSON, Refusal};
use super::turn::Turns;
use crate::admission::Admission;
use otel_webhook_telemetry::{Metrics, ReviewOutcome};

/// The state that the handlers share.
#[derive(Clone)]
pub struct Reviews(Arc<Shared>);

struct Shared {
    admission: Arc<Admission>,
    metrics: Arc<Metrics>,
    memory: BodyMemory,
    turns: Turns,
}

impl Reviews {
    /// Exposes the metrics of all endpoints from the start.
    pub fn new(admission: Arc<Admission>, metrics: Arc<Metrics>, limits: BodyLimits) -> Self {
        for endpoint in Endpoint::ALL {
            metrics.expect_reviews(endpoint.path());
        }
        let turns = Turns::new(Arc::clone(&admission));
        Self(Arc::new(Shared { admission, metrics, memory: BodyMemory::new(limits), turns }))
    }
}

/// Responds to a review.
pub async fn handle(endpoint: Endpoint, State(reviews): State<Reviews>, request: Request) -> Response {
    let started = Instant::now();
    let (outcome, response) = match reviews.0.answer(endpoint, request).await {
        Ok((outcome, review)) => (outcome, ([(header::CONTENT_TYPE, JSON)], review).into_response()),
        Err(refusal) => {
            refusal.log();
            (refusal.outcome(), refusal.into_response())
        }
    };
    reviews.0.metrics.count_review(endpoint.path(), outcome, started.elapsed());
    response
}

impl Shared {
    async fn answer(&self, endpoint: Endpoint, request: Request) -> Result<(ReviewOutcome, Bytes), Refusal> {
        let (head, body) = request.into_parts();
        let deadline = Deadline::of(head.uri.query());
        check_content_type(&head.headers)?;
        let body =
            body::read(&head.headers, body, &self.memory, endpoint.share(&self.memory), deadline).await?;
        let body = Arc::new(body);
        let (outcome, review) = match self.turns.decide(endpoint, &body, deadline).await {
            Ok(review) => (ReviewOutcome::Answered, review),
            Err(late @ Refusal::NotDecided { .. }) => {
                let outcome = late.outcome();
                match endpoint.allow_undecided(&self.admission, &body.bytes, &late.to_string()) {
                    Some(review) => (outcome, review?),
                    None => return Err(late),
                }
            }
            Err(refusal) => return Err(refusal),
        };
        Ok((outcome, written(body, review)))
    }
}

/// Returns the response, which keeps its part of the memory until it is written. A decision that is not waited for any
/// more keeps the memory of the body itself.
fn written(body: Arc<Held>, review: Vec<u8>) -> Bytes {
    match Arc::into_inner(body) {
        Some(body) => body.exchange(review),
        None => review.into(),
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Err(Refusal::WrongContentType("none".to_owned()));
    };
    if *value == JSON {
        return Ok(());
    }
    let text = String::from_utf8_lossy(value.as_bytes());
    let essence = text.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Refusal::WrongContentType(text.into_owned()))
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::{HeaderValue, StatusCode};
    use otel_webhook_api::defaults::DefaultImages;
    use otel_webhook_inject::Settings;
    use serde_json::{Value, json};

    use super::*;
    use crate::turn::LARGE;
    use otel_webhook_store::Writer;

    fn reviews() -> Reviews {
        let (store, metrics) = (Writer::new(DefaultImages::default()).store(), Arc::new(Metrics::new()));
        let admission = Admission::new(store, Settings::default(), None, Arc::clone(&metrics));
        Reviews::new(Arc::new(admission), metrics, BodyLimits { each: 1, together: 1 })
    }

    /// A review of an object with an annotation of this size.
    async fn ask(reviews: &Reviews, endpoint: Endpoint, resource: Value, size: usize) -> (StatusCode, Value) {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "operation": "CREATE", "namespace": "shop", "resource": resource,
            "object": {"metadata": {"annotations": {"a": "x".repeat(size)}}, "spec": {}},
        }});
        let request = Request::post("/?timeout=150ms").header(header::CONTENT_TYPE, JSON);
        let request = request.body(Body::from(review.to_string())).expect("a request");
        let response = handle(endpoint, State(reviews.clone()), request).await;
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        (status, serde_json::from_slice(&body).expect("JSON"))
    }

    #[tokio::test]
    async fn a_pod_that_is_not_decided_in_time_is_allowed_with_a_warning() {
        let reviews = reviews();
        let turn = reviews.0.turns.occupy();
        for (endpoint, resource, consequence) in [
            (Endpoint::MutatePod, json!({"resource": "pods"}), "the pod is not injected"),
            (Endpoint::ValidateWorkloads, json!({"resource": "deployments"}), "the workload was not checked"),
        ] {
            let (status, review) = ask(&reviews, endpoint, resource.clone(), LARGE).await;
            let warning = format!(
                "otel-webhook: {consequence}: the review was not decided within 50ms: \
                 other large reviews took the time"
            );
            assert_eq!(status, StatusCode::OK);
            assert_eq!(review["response"], json!({"uid": "u", "allowed": true, "warnings": [warning]}));
            // Small reviews do not wait for large ones.
            let (status, review) = ask(&reviews, endpoint, resource, 1).await;
            assert_eq!((status, &review["response"]["warnings"]), (StatusCode::OK, &Value::Null));
            let text = reviews.0.metrics.encode();
            for outcome in ["Answered", "DeadlineExceeded"] {
                let path = endpoint.path();
                let labels = format!("{{endpoint=\"{path}\",outcome=\"{outcome}\"}} 1\n");
                assert!(text.contains(&labels), "{labels}{text}");
            }
        }
        drop(turn);
        let (status, review) = ask(&reviews, Endpoint::MutatePod, json!({"resource": "pods"}), LARGE).await;
        assert_eq!((status, &review["response"]["warnings"]), (StatusCode::OK, &Value::Null));
    }

    #[tokio::test]
    async fn an_instrumentation_is_not_stored_without_validation() {
        let reviews = reviews();
        let _turn = reviews.0.turns.occupy();
        let resource = json!({"group": "opentelemetry.io", "resource": "instrumentations"});
        let (status, body) = ask(&reviews, Endpoint::ValidateInstrumentation, resource, LARGE).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        let message = "the review was not decided within 50ms: other large reviews took the time";
        assert_eq!(body["message"], message);
    }

    fn declaring(content_type: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))])
    }

    #[test]
    fn json_is_accepted_with_parameters_and_in_any_case() {
        for value in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
            assert!(check_content_type(&declaring(value)).is_ok(), "{value}");
        }
    }

    #[test]
    fn other_content_types_are_rejected_by_name() {
        let cases = [
            (declaring("application/yaml"), "application/yaml"),
            (declaring("application/json-patch+json"), "application/json-patch+json"),
            (HeaderMap::new(), "none"),
        ];
        for (headers, found) in cases {
            let refusal = check_content_type(&headers).expect_err(found);
            let expected = format!("expected the content type application/json, found {found}");
            assert_eq!(refusal.to_string(), expected);
        }
    }
}
