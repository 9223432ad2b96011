//! The partner of every comparison: a handler that reads the body and answers
//! the same few bytes, behind the listener, the TLS and the runtime of the
//! product.

use axum::{
    Router,
    body::Bytes,
    http::{HeaderName, header},
    routing::post,
};
use otel_webhook_server::tls::{DEFAULT_NAMES, SelfSigned};

use crate::stack;

/// Makes this program that server.
pub const ARGUMENT: &str = "empty-handler";

/// Answers until the process is ended.
pub fn serve() {
    let pair = SelfSigned::generate(&DEFAULT_NAMES).expect("a pair");
    stack::serve(Router::new().route("/mutate-v1-pod", post(answer)), &pair);
}

async fn answer(_body: Bytes) -> ([(HeaderName, &'static str); 1], &'static str) {
    ([(header::CONTENT_TYPE, "application/json")], "{}")
}
