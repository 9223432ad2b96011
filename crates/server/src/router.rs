//! The routes of the webhook port, and the responses to unknown paths and methods.

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::{MethodRouter, post};

use super::body_memory::BodyLimits;
use super::endpoint::Endpoint;
use super::review::{self, Reviews};
use crate::admission::Admission;
use otel_webhook_telemetry::Metrics;

/// The routes of the webhook port: one for each endpoint, with the default bounds of bodies.
pub fn webhook_router(admission: Arc<Admission>, metrics: Arc<Metrics>) -> Router {
    webhook_router_within(admission, metrics, BodyLimits::default())
}

/// The routes of the webhook port, with these bounds of bodies.
pub fn webhook_router_within(admission: Arc<Admission>, metrics: Arc<Metrics>, limits: BodyLimits) -> Router {
    let reviews = Reviews::new(admission, metrics, limits);
    let route = |endpoint: Endpoint| {
        let handler = move |state, request| review::handle(endpoint, state, request);
        (endpoint.path(), "POST", post(handler))
    };
    with_routes(Endpoint::ALL.map(route).into()).with_state(reviews)
}

/// Returns a router of these paths. The response to other paths lists them.
pub fn with_routes<S>(routes: Vec<(&'static str, &'static str, MethodRouter<S>)>) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    let list: Vec<String> = routes.iter().map(|(path, method, _)| format!("{method} {path}")).collect();
    let list = list.join(", ");
    let known = list.clone();
    routes
        .into_iter()
        .fold(Router::new(), |router, (path, _, handler)| router.route(path, handler))
        // axum adds the header Allow.
        .method_not_allowed_fallback(move |method: Method, uri: Uri| {
            let text = format!("{method} is not allowed on {}; valid: {list}\n", uri.path());
            ready((StatusCode::METHOD_NOT_ALLOWED, text))
        })
        .fallback(move |uri: Uri| {
            let text = format!("unknown path {}; valid: {known}\n", uri.path());
            ready((StatusCode::NOT_FOUND, text))
        })
}
