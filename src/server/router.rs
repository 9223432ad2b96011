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
use crate::telemetry::Metrics;

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

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::{Request, header};
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    fn router() -> Router {
        with_routes(vec![("/one", "GET", get(async || "one")), ("/two", "POST", post(async || "two"))])
    }

    async fn ask(method: &str, path: &str) -> (StatusCode, Option<String>, String) {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).expect("a request");
        let response = router().oneshot(request).await.expect("an answer");
        let allow =
            response.headers().get(header::ALLOW).map(|value| value.to_str().expect("text").to_owned());
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        (status, allow, String::from_utf8(body.to_vec()).expect("text"))
    }

    #[tokio::test]
    async fn the_response_to_an_unknown_path_lists_the_valid_ones() {
        let (status, _, text) = ask("GET", "/three").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert_eq!(text, "unknown path /three; valid: GET /one, POST /two\n");
    }

    #[tokio::test]
    async fn the_response_to_a_wrong_method_lists_the_valid_ones() {
        let (status, allow, text) = ask("GET", "/two").await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(allow.as_deref(), Some("POST"));
        assert_eq!(text, "GET is not allowed on /two; valid: GET /one, POST /two\n");
        let (_, allow, _) = ask("DELETE", "/one").await;
        assert_eq!(allow.as_deref(), Some("GET,HEAD"));
    }
}
