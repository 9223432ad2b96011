//! The status page, and the same as JSON, on a port of its own without TLS.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::get,
};

use super::router::with_routes;
use crate::page;
use otel_webhook_fleet::report::ClusterReport;

/// Returns the present report.
pub type ReadReport = Arc<dyn Fn() -> Arc<ClusterReport> + Send + Sync>;

/// The routes of the port: `GET /` and `GET /report.json`.
pub fn page_router(read: ReadReport) -> Router {
    with_routes(vec![("/", "GET", get(show_page)), ("/report.json", "GET", get(show_json))]).with_state(read)
}

async fn show_page(State(read): State<ReadReport>) -> Response {
    let report = read();
    (page::headers(), page::page(std::slice::from_ref(&*report))).into_response()
}

async fn show_json(State(read): State<ReadReport>) -> Response {
    let headers = [
        ("content-type", "application/json"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
    ];
    (headers, serde_json::json!(*read()).to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use axum::{
        body::{Body, to_bytes},
        http::{Request, StatusCode},
    };
    use otel_webhook_fleet::report::Report;
    use tower::ServiceExt;

    use super::*;

    async fn get_page(path: &str) -> (StatusCode, Vec<(String, String)>, String) {
        let report = Arc::new(ClusterReport {
            cluster: "here".to_owned(),
            taken: "2026-11-23T12:00:00Z".parse().expect("a time"),
            incomplete: Vec::new(),
            report: Report::default(),
        });
        let router = page_router(Arc::new(move || Arc::clone(&report)));
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let response = router.oneshot(request).await.expect("an answer");
        let status = response.status();
        let headers = response.headers().iter();
        let headers =
            headers.map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()));
        let headers = headers.collect();
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        (status, headers, String::from_utf8(body.to_vec()).expect("text"))
    }

    #[tokio::test]
    async fn the_page_has_its_headers_once() {
        let (status, headers, body) = get_page("/").await;
        assert_eq!(status, StatusCode::OK);
        assert!(body.starts_with("<!DOCTYPE html>"), "{body}");
        assert!(body.contains(">here<") && body.contains(">2026-11-23 12:00<"), "{body}");
        for (name, value) in page::headers() {
            let own: Vec<_> =
                headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value).collect();
            assert_eq!(own, [&value], "{name}");
        }
    }

    #[tokio::test]
    async fn the_report_is_there_as_json() {
        let (status, _, body) = get_page("/report.json").await;
        let report: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!((status, &report["cluster"]), (StatusCode::OK, &serde_json::json!("here")));
        assert_eq!(get_page("/other").await.0, StatusCode::NOT_FOUND);
    }
}
