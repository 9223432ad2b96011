//! One review over HTTP: reads the request, calls `admission` and writes the response.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use thiserror::Error;
use tokio::time;

use crate::admission::Admission;
use crate::telemetry::{Metrics, ReviewOutcome};
use otel_webhook_review::MalformedReview;

/// The endpoints of the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Injects into pods.
    MutatePod,
    /// Defaults Instrumentations.
    MutateInstrumentation,
    /// Validates Instrumentations.
    ValidateInstrumentation,
    /// Warns about workloads whose pods will not be injected.
    ValidateWorkloads,
}

impl Endpoint {
    /// All endpoints.
    pub const ALL: [Self; 4] = [
        Self::MutatePod,
        Self::MutateInstrumentation,
        Self::ValidateInstrumentation,
        Self::ValidateWorkloads,
    ];

    /// Returns the path. It is the operator's path if there is one, so that its webhook configurations can be reused.
    pub const fn path(self) -> &'static str {
        match self {
            Self::MutatePod => "/mutate-v1-pod",
            Self::MutateInstrumentation => "/mutate-opentelemetry-io-v1alpha1-instrumentation",
            Self::ValidateInstrumentation => "/validate-opentelemetry-io-v1alpha1-instrumentation",
            Self::ValidateWorkloads => "/validate-workloads",
        }
    }

    async fn review(self, admission: &Admission, body: &[u8]) -> Result<Vec<u8>, MalformedReview> {
        match self {
            Self::MutatePod => admission.mutate_pod(body).await,
            Self::MutateInstrumentation => admission.mutate_instrumentation(body),
            Self::ValidateInstrumentation => admission.validate_instrumentation(body),
            Self::ValidateWorkloads => admission.validate_workload(body).await,
        }
    }
}

/// Bytes. Objects in etcd have at most 1.5 MiB; a review contains at most two, and JSON escapes.
pub const BODY_LIMIT: usize = 8 * 1024 * 1024;

/// API servers wait for at most 30 s, including the body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The state that the handlers share.
#[derive(Clone)]
pub struct Reviews {
    admission: Arc<Admission>,
    metrics: Arc<Metrics>,
}

impl Reviews {
    /// Exposes the metrics of all endpoints from the start.
    pub fn new(admission: Arc<Admission>, metrics: Arc<Metrics>) -> Self {
        for endpoint in Endpoint::ALL {
            metrics.expect_reviews(endpoint.path());
        }
        Self { admission, metrics }
    }
}

/// Why the response to a request is not a review.
#[derive(Debug, Error)]
enum Refusal {
    #[error("expected the content type application/json, found {0}")]
    WrongContentType(String),
    #[error("the body is larger than {BODY_LIMIT} bytes")]
    TooLarge,
    #[error("the body ended early: {0}")]
    Broken(Box<dyn std::error::Error + Send + Sync>),
    #[error("the body did not arrive within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error(transparent)]
    Malformed(#[from] MalformedReview),
    #[error("the processing of the review panicked: {0}")]
    Panicked(String),
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::WrongContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken(_) | Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::TimedOut(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Panicked(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn outcome(&self) -> ReviewOutcome {
        match self {
            Self::WrongContentType(_) => ReviewOutcome::WrongContentType,
            Self::TooLarge => ReviewOutcome::TooLarge,
            Self::Broken(_) | Self::TimedOut(_) => ReviewOutcome::Incomplete,
            Self::Malformed(_) => ReviewOutcome::Malformed,
            Self::Panicked(_) => ReviewOutcome::Panicked,
        }
    }
}

impl Refusal {
    /// Errors of clients are only in the metrics: otherwise any client in the cluster could flood the log.
    fn log(&self) {
        if matches!(self, Self::Panicked(_)) {
            tracing::error!(error = self.to_string(), "cannot respond to a review");
        } else {
            tracing::debug!(error = self.to_string(), "rejected a request");
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        // A Status like the API server's, so that its log contains the reason.
        let body = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Failure",
            "code": self.status().as_u16(),
            "message": self.to_string(),
        });
        (self.status(), [(header::CONTENT_TYPE, JSON)], format!("{body}\n")).into_response()
    }
}

/// Responds to a review.
pub async fn handle(endpoint: Endpoint, State(reviews): State<Reviews>, request: Request) -> Response {
    let started = Instant::now();
    let (outcome, response) = match answer(endpoint, &reviews.admission, request).await {
        Ok(review) => (ReviewOutcome::Answered, ([(header::CONTENT_TYPE, JSON)], review).into_response()),
        Err(refusal) => {
            refusal.log();
            (refusal.outcome(), refusal.into_response())
        }
    };
    reviews.metrics.count_review(endpoint.path(), outcome, started.elapsed());
    response
}

async fn answer(endpoint: Endpoint, admission: &Admission, request: Request) -> Result<Vec<u8>, Refusal> {
    let (head, body) = request.into_parts();
    check_content_type(&head.headers)?;
    let body = read_body(&head.headers, body, BODY_TIMEOUT).await?;
    // On the heap, since the future is large and is moved several times.
    Ok(caught(Box::pin(endpoint.review(admission, &body))).await??)
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

async fn read_body(headers: &HeaderMap, body: Body, patience: Duration) -> Result<Bytes, Refusal> {
    // A content length above the limit is rejected before the body is read.
    if declared_length(headers).is_some_and(|length| length > BODY_LIMIT) {
        return Err(Refusal::TooLarge);
    }
    match time::timeout(patience, Limited::new(body, BODY_LIMIT).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::TooLarge),
        Ok(Err(error)) => Err(Refusal::Broken(error)),
        Err(_) => Err(Refusal::TimedOut(patience)),
    }
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Awaits `handling` and turns a panic into a response. Otherwise the connection would be closed, and the API
/// server could not log the reason.
async fn caught<F: Future>(handling: F) -> Result<F::Output, Refusal> {
    // A panic cannot leave inconsistent state: shared state is replaced as a whole, never edited.
    AssertUnwindSafe(handling).catch_unwind().await.map_err(|payload| {
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        Refusal::Panicked(message.unwrap_or_else(|| "panicked".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[tokio::test]
    async fn bodies_up_to_the_limit_are_read() {
        let body = |length| Body::from(vec![b' '; length]);
        let read =
            read_body(&HeaderMap::new(), body(BODY_LIMIT), BODY_TIMEOUT).await.expect("within the limit");
        assert_eq!(read.len(), BODY_LIMIT);
        let refusal = read_body(&HeaderMap::new(), body(BODY_LIMIT + 1), BODY_TIMEOUT).await;
        assert!(matches!(refusal, Err(Refusal::TooLarge)), "{refusal:?}");
    }

    #[tokio::test]
    async fn a_content_length_above_the_limit_is_rejected_without_reading() {
        let headers = HeaderMap::from_iter([(header::CONTENT_LENGTH, HeaderValue::from(BODY_LIMIT + 1))]);
        let never = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let refusal = read_body(&headers, never, BODY_TIMEOUT).await;
        assert!(matches!(refusal, Err(Refusal::TooLarge)), "{refusal:?}");
    }

    #[tokio::test]
    async fn a_body_that_ends_early_is_incomplete() {
        let broken =
            futures::stream::iter([Ok(Bytes::from_static(b"{")), Err(std::io::Error::other("gone"))]);
        let refusal =
            read_body(&HeaderMap::new(), Body::from_stream(broken), BODY_TIMEOUT).await.expect_err("no end");
        assert_eq!(refusal.status(), StatusCode::BAD_REQUEST);
        assert_eq!(refusal.outcome(), ReviewOutcome::Incomplete);
        assert!(refusal.to_string().contains("gone"), "{refusal}");
    }

    #[tokio::test]
    async fn a_body_that_does_not_arrive_times_out() {
        let never = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let refusal = read_body(&HeaderMap::new(), never, Duration::ZERO).await.expect_err("no body");
        assert_eq!(refusal.status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(refusal.to_string(), "the body did not arrive within 0 s");
    }

    #[tokio::test]
    async fn the_response_after_a_panic_has_its_message() {
        let refusal = caught(async { panic!("on purpose") }).await.expect_err("a panic");
        assert_eq!(refusal.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(refusal.outcome(), ReviewOutcome::Panicked);
        assert!(refusal.to_string().ends_with("on purpose"), "{refusal}");
    }
}
