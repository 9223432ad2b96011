//! What is answered to which request.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use http_body_util::Full;
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::{Request, StatusCode};
use otel_webhook_server::{BodyLimits, Health, Listening, Shutdown, Transport, admin_router};
use otel_webhook_telemetry::Metrics;

use super::harness::{Server, send_plain, soon};

const REVIEW: &[u8] = include_bytes!("review.json");

#[tokio::test]
async fn reviews_are_answered_one_after_the_other_on_one_connection() {
    let server = Server::webhook();
    let mut client = server.client().await;
    for _ in 0..3 {
        let answer = client.review(REVIEW).await.expect("an answer");
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        assert_eq!(answer.headers[CONTENT_TYPE], "application/json");
        let review: serde_json::Value = serde_json::from_str(&answer.text).expect("JSON");
        assert_eq!(review["response"]["uid"], "0df28fbd-5f5f-11e8-bc74-36e6bb280816");
    }
    let text = server.metrics.encode();
    let line = "otel_webhook_reviews_total{endpoint=\"/mutate-v1-pod\",outcome=\"Answered\"} 3\n";
    assert!(text.contains(line), "{text}");
}

#[tokio::test]
async fn a_body_that_is_no_review_is_refused_and_the_connection_goes_on() {
    let server = Server::webhook();
    let mut client = server.client().await;
    let answer = client.review("{").await.expect("an answer");
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(!answer.text.trim().is_empty());
    let answer = client.review(REVIEW).await.expect("an answer");
    assert_eq!(answer.status, StatusCode::OK);
    let text = server.metrics.encode();
    assert!(text.contains("outcome=\"Malformed\"} 1\n"), "{text}");
}

/// The message of a failure, which is worded as the API server words its own.
fn message(text: &str) -> String {
    let status: serde_json::Value = serde_json::from_str(text).expect("a Status");
    assert_eq!(status["kind"], "Status");
    status["message"].as_str().expect("a message").to_owned()
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    for (limits, largest) in
        [(BodyLimits::default(), 8 * 1024 * 1024), (BodyLimits { each: 1, together: 2 }, 1024 * 1024)]
    {
        let server = Server::webhook_within(limits);
        for (size, status) in
            [(largest, StatusCode::BAD_REQUEST), (largest + 1, StatusCode::PAYLOAD_TOO_LARGE)]
        {
            let mut client = server.client().await;
            let request = Request::post("/mutate-v1-pod")
                .header(CONTENT_TYPE, "application/json")
                .body(Full::from(vec![b' '; size]))
                .expect("a request");
            let answer = client.send(request).await.expect("an answer");
            assert_eq!(answer.status, status, "{size}");
            if size > largest {
                let expected = format!("the body is larger than {largest} bytes; raise --max-review-size");
                assert_eq!(message(&answer.text), expected);
            }
        }
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_told_what_there_is() {
    let server = Server::webhook();
    let mut client = server.client().await;
    let all = "POST /mutate-v1-pod, POST /mutate-opentelemetry-io-v1alpha1-instrumentation, \
               POST /validate-opentelemetry-io-v1alpha1-instrumentation, POST /validate-workloads, POST /convert";
    let answer = client.get("/").await.expect("an answer");
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.text, format!("unknown path /; valid: {all}\n"));
    let answer = client.get("/mutate-v1-pod").await.expect("an answer");
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(answer.headers[ALLOW], "POST");
    assert_eq!(answer.text, format!("GET is not allowed on /mutate-v1-pod; valid: {all}\n"));
}

#[tokio::test]
async fn a_panic_ends_nothing_but_its_own_connection() {
    let router = Router::new()
        .route("/panic", get(async || -> () { panic!("on purpose") }))
        .route("/", get(async || "fine"));
    let server = Server::of(router);
    let (mut one, mut other) = (server.client().await, server.client().await);
    assert!(one.get("/panic").await.is_err());
    assert_eq!(other.get("/").await.expect("an answer").text, "fine");
    assert_eq!(server.client().await.get("/").await.expect("an answer").text, "fine");
}

#[tokio::test]
async fn the_admin_port_speaks_plain_http() {
    let metrics = Arc::new(Metrics::new());
    metrics.count_injection("java", "Injected");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listening = Listening::bind("admin", any).expect("a port");
    let address = listening.address;
    let shutdown = Shutdown::new();
    let router = admin_router(Arc::new(Health::new()), metrics, None);
    let served = tokio::spawn(listening.serve(router, Transport::Plain, shutdown.phases(), Duration::ZERO));

    let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let text = send_plain(address, request).await;

    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(
        text.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
        "{text}"
    );
    assert!(
        text.contains("otel_webhook_injections_total{language=\"java\",outcome=\"Injected\"} 1\n"),
        "{text}"
    );
    shutdown.stop();
    soon(served).await.expect("an end without panic");
}
