//! Bodies: what they may take, and what happens to those beyond it.

use std::io;

use axum::body::{Body, Bytes};
use futures::{StreamExt, future::join_all, stream};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use hyper::{Request, StatusCode};
use serde_json::Value;

use otel_webhook_server::BodyLimits;

use super::harness::{Server, until};
use crate::cli::run;

const REVIEW: &str = include_str!("review.json");

const ANSWERED: &str = "otel_webhook_reviews_total{endpoint=\"/mutate-v1-pod\",outcome=\"Answered\"}";
const NO_MEMORY: &str = "otel_webhook_reviews_total{endpoint=\"/mutate-v1-pod\",outcome=\"MemoryLimit\"}";

/// A review with a body of any kind.
fn request(length: Option<usize>, body: Body) -> Request<Body> {
    let request = Request::post("/mutate-v1-pod?timeout=30s").header(CONTENT_TYPE, "application/json");
    let request = length.into_iter().fold(request, |request, length| request.header(CONTENT_LENGTH, length));
    request.body(body).expect("a request")
}

#[tokio::test]
async fn unfinished_bodies_keep_out_no_review() {
    let server = Server::webhook_within(BodyLimits { each: 8, together: 8 });
    let mut unfinished = Vec::new();
    for _ in 0..40 {
        let mut sender = server.sender().await;
        let begin = stream::once(async { Ok::<_, io::Error>(Bytes::from(vec![b' '; 900_000])) });
        let body = Body::from_stream(begin.chain(stream::pending()));
        unfinished.push(tokio::spawn(async move {
            sender.send_request(request(Some(1_000_000), body)).await.map(|answer| answer.status())
        }));
    }
    let mut client = server.client().await;
    for _ in 0..5 {
        let answer = client.review(REVIEW).await.expect("an answer");
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    }
    // 8 MiB have room for 8 of them.
    until(async || server.count(NO_MEMORY) >= 32).await;
    assert_eq!(server.count(ANSWERED), 5);
    for task in unfinished {
        if task.is_finished() {
            // The connection may be gone before the client has read it.
            let answer = task.await.expect("no panic");
            assert!(
                answer.as_ref().map_or(true, |status| *status == StatusCode::SERVICE_UNAVAILABLE),
                "{answer:?}"
            );
        } else {
            task.abort();
        }
    }
}

/// The review with a pod that has one more annotation.
fn padded(size: usize) -> String {
    let mut review: Value = serde_json::from_str(REVIEW).expect("JSON");
    review["request"]["object"]["metadata"]["annotations"]["padding"] = "x".repeat(size).into();
    review.to_string()
}

#[tokio::test]
async fn large_reviews_are_answered_as_small_ones_are() {
    let server = Server::webhook();
    let mut client = server.client().await;
    let small = client.review(padded(1_000)).await.expect("an answer");
    let large = client.review(padded(1_000_000)).await.expect("an answer");
    assert_eq!((small.status, large.status), (StatusCode::OK, StatusCode::OK));
    assert_eq!(small.text, large.text);
    let waiting: Vec<_> = (0..8).map(|_| server.client()).collect();
    let mut clients = join_all(waiting).await;
    let reviews = clients.iter_mut().map(|client| client.review(padded(500_000)));
    for answer in join_all(reviews).await {
        assert_eq!(answer.expect("an answer").text, small.text);
    }
    assert_eq!(server.count(ANSWERED), 10);
}

/// A body of that size would wait for memory until its deadline.
#[test]
fn the_memory_has_to_have_room_for_the_largest_body() {
    let serve = ["serve", "--source", ".", "--tls-self-signed"];
    let run = run(&[&serve[..], &["--max-review-memory", "16", "--max-review-size", "17"]].concat(), "");
    let expected = "--max-review-memory is 16 and has to be at least 17, the value of --max-review-size";
    assert_eq!((run.code, run.err.trim()), (2, &*format!("otel-webhook: {expected}")));
}
