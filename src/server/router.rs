//! Which path leads where, and what is answered on all others.

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::{MethodRouter, post};

use super::review::{self, Endpoint, Reviews};
use crate::admission::Admission;
use crate::telemetry::Metrics;

/// The routes of the webhook port: one for each endpoint.
pub fn webhook_router(admission: Arc<Admission>, metrics: Arc<Metrics>) -> Router {
    let reviews = Reviews::new(admission, metrics);
    let route = |endpoint: Endpoint| {
        let handler = move |state, request| review::handle(endpoint, state, request);
        (endpoint.path(), "POST", post(handler))
    };
    with_routes(Endpoint::ALL.map(route).into()).with_state(reviews)
}

/// A router of these paths, which names them to whoever asks for another one.
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
            let text = format!("{method} is not allowed on {}; there is: {list}\n", uri.path());
            ready((StatusCode::METHOD_NOT_ALLOWED, text))
        })
        .fallback(move |uri: Uri| {
            let text = format!("nothing is at {}; there is: {known}\n", uri.path());
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
    async fn an_unknown_path_is_told_the_known_ones() {
        let (status, _, text) = ask("GET", "/three").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert_eq!(text, "nothing is at /three; there is: GET /one, POST /two\n");
    }

    #[tokio::test]
    async fn a_wrong_method_is_told_the_right_one() {
        let (status, allow, text) = ask("GET", "/two").await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(allow.as_deref(), Some("POST"));
        assert_eq!(text, "GET is not allowed on /two; there is: GET /one, POST /two\n");
        let (_, allow, _) = ask("DELETE", "/one").await;
        assert_eq!(allow.as_deref(), Some("GET,HEAD"));
    }
}
