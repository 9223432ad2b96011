//! The status page, and the same as JSON, on its own port without TLS.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header::HOST, uri::Authority},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::get,
};

use super::router::with_routes;
use crate::page;
use otel_webhook_fleet::report::ClusterReport;

/// Returns the present report, or why there is none.
pub type ReadReport = Arc<dyn Fn() -> Result<Arc<ClusterReport>, String> + Send + Sync>;

/// The routes of the port: `GET /` and `GET /report.json`. On a loopback address, requests have to name one as well.
pub fn page_router(read: ReadReport, address: SocketAddr) -> Router {
    let paths = vec![("/", "GET", get(show_page)), ("/report.json", "GET", get(show_json))];
    let router = with_routes(paths).with_state(read);
    if address.ip().is_loopback() { router.layer(from_fn(only_for_loopback)) } else { router }
}

/// While the port is forwarded, a web site could have a browser read the page under its own name that it lets
/// resolve to 127.0.0.1 (DNS rebinding). Such a request names that site.
async fn only_for_loopback(request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if is_loopback(host) {
        return next.run(request).await;
    }
    let advice = "this port answers for localhost and 127.0.0.1 only; --page-listen sets another address\n";
    (StatusCode::MISDIRECTED_REQUEST, advice).into_response()
}

fn is_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_matches(['[', ']']);
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

async fn show_page(State(read): State<ReadReport>) -> Response {
    match read() {
        Ok(report) => (page::headers(), page::page(std::slice::from_ref(&*report))).into_response(),
        Err(why) => unavailable(why),
    }
}

async fn show_json(State(read): State<ReadReport>) -> Response {
    let headers = [
        ("content-type", "application/json"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
    ];
    match read() {
        Ok(report) => (headers, serde_json::json!(*report).to_string()).into_response(),
        Err(why) => unavailable(why),
    }
}

fn unavailable(why: String) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

#[cfg(test)]
mod tests {
    use axum::{
        body::{Body, to_bytes},
        http::Request,
    };
    use otel_webhook_fleet::report::Report;
    use tower::ServiceExt;

    use super::*;

    async fn get_page(path: &str) -> (StatusCode, Vec<(String, String)>, String) {
        get_from("localhost:8081", "127.0.0.1:8081", path).await
    }

    async fn get_from(host: &str, address: &str, path: &str) -> (StatusCode, Vec<(String, String)>, String) {
        let report = Arc::new(ClusterReport {
            cluster: "here".to_owned(),
            taken: "2026-11-23T12:00:00Z".parse().expect("a time"),
            incomplete: Vec::new(),
            report: Report::default(),
        });
        let address = address.parse().expect("an address");
        let router = page_router(Arc::new(move || Ok(Arc::clone(&report))), address);
        let request = Request::get(path).header(HOST, host).body(Body::empty()).expect("a request");
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
    async fn on_loopback_it_answers_to_names_of_loopback_only() {
        for (host, address, expected) in [
            ("localhost:8081", "127.0.0.1:8081", StatusCode::OK),
            ("127.0.0.1:9000", "127.0.0.1:8081", StatusCode::OK),
            ("[::1]:8081", "[::1]:8081", StatusCode::OK),
            ("evil.example:8081", "127.0.0.1:8081", StatusCode::MISDIRECTED_REQUEST),
            ("localhost.evil.example", "127.0.0.1:8081", StatusCode::MISDIRECTED_REQUEST),
            ("", "127.0.0.1:8081", StatusCode::MISDIRECTED_REQUEST),
            ("status.example", "10.0.0.7:8081", StatusCode::OK),
        ] {
            let (status, _, body) = get_from(host, address, "/report.json").await;
            assert_eq!(status, expected, "{host} at {address}: {body}");
        }
    }

    #[tokio::test]
    async fn without_a_report_both_are_unavailable() {
        for path in ["/", "/report.json"] {
            let address = "127.0.0.1:8081".parse().expect("an address");
            let router = page_router(Arc::new(|| Err("another replica leads".to_owned())), address);
            let request =
                Request::get(path).header(HOST, "localhost").body(Body::empty()).expect("a request");
            let response = router.oneshot(request).await.expect("an answer");
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
            let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
            assert_eq!(body, "another replica leads", "{path}");
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
