//! Why the response to a request is not a review.

use std::time::Duration;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use otel_webhook_review::MalformedReview;
use thiserror::Error;

use super::body_memory::GRACE;
use otel_webhook_telemetry::ReviewOutcome;

/// The content type of requests and responses.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Why the response to a request is not a review.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The content type is not JSON.
    #[error("expected the content type application/json, found {0}")]
    WrongContentType(String),
    /// The body is larger than so many bytes, which the flag sets.
    #[error("the body is larger than {0} bytes; raise {1}")]
    TooLarge(usize, &'static str),
    /// The connection failed.
    #[error("the body ended early: {0}")]
    Broken(Box<dyn std::error::Error + Send + Sync>),
    /// The deadline has passed before the body was complete.
    #[error("the body did not arrive within {0:?}")]
    TimedOut(Duration),
    /// The deadline has passed before there was memory for the body.
    #[error("the memory for request bodies was in use for {0:?}; raise --max-review-memory")]
    NoMemory(Duration),
    /// The body was incomplete when others needed its memory.
    #[error(
        "the body was not complete within {GRACE:?}, and others needed its memory; raise --max-review-memory"
    )]
    GaveWay,
    /// The deadline has passed before the review was decided.
    #[error("the review was not decided within {patience:?}: {reason}")]
    NotDecided {
        /// The time that there was.
        patience: Duration,
        /// What took the time.
        reason: &'static str,
    },
    /// The body is not a review.
    #[error(transparent)]
    Malformed(#[from] MalformedReview),
    /// The decision panicked.
    #[error("the processing of the review panicked: {0}")]
    Panicked(String),
}

impl Refusal {
    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::WrongContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge(..) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken(_) | Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::TimedOut(_) => StatusCode::REQUEST_TIMEOUT,
            Self::NoMemory(_) | Self::GaveWay | Self::NotDecided { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Panicked(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the outcome in the metrics.
    pub fn outcome(&self) -> ReviewOutcome {
        match self {
            Self::WrongContentType(_) => ReviewOutcome::WrongContentType,
            Self::TooLarge(..) => ReviewOutcome::TooLarge,
            Self::Broken(_) | Self::TimedOut(_) => ReviewOutcome::Incomplete,
            Self::NoMemory(_) | Self::GaveWay => ReviewOutcome::MemoryLimit,
            Self::NotDecided { .. } => ReviewOutcome::DeadlineExceeded,
            Self::Malformed(_) => ReviewOutcome::Malformed,
            Self::Panicked(_) => ReviewOutcome::Panicked,
        }
    }

    /// Errors of clients are only in the metrics: otherwise any client in the cluster could flood the log.
    pub fn log(&self) {
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
