//! Handshakes: which are refused, which are short.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use rustls::HandshakeKind;
use rustls::client::Resumption;

use super::harness::{Client, Server, send_plain, soon, trusting, trusting_by, until};

fn server() -> Server {
    Server::of(Router::new().route("/", get(async || "fine")))
}

async fn failures_reach(server: &Server, count: u32) {
    let line = format!("otel_webhook_tls_handshake_failures_total {count}\n");
    until(async || server.metrics.encode().contains(&line)).await;
}

#[tokio::test]
async fn a_client_that_insists_on_http2_is_refused_in_the_handshake() {
    let server = server();
    let mut config = trusting(&server.ca_pem);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let error = server.client_with(config).await.err().expect("no common protocol");
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
    failures_reach(&server, 1).await;
}

#[tokio::test]
async fn http1_is_chosen_from_an_offer_and_without_one() {
    let server = server();
    let mut config = trusting(&server.ca_pem);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut client = server.client_with(config).await.expect("a connection");
    assert_eq!(client.alpn.as_deref(), Some(&b"http/1.1"[..]));
    assert_eq!(client.get("/").await.expect("an answer").text, "fine");

    let mut config = trusting(&server.ca_pem);
    config.alpn_protocols.clear();
    let mut client = server.client_with(config).await.expect("a connection");
    assert_eq!(client.alpn, None);
    assert_eq!(client.get("/").await.expect("an answer").text, "fine");
}

#[tokio::test]
async fn plain_http_is_a_failed_handshake_and_nothing_more() {
    let server = server();
    // An alert, or a reset: the server may be gone before all was read.
    let received = send_plain(server.address, b"GET / HTTP/1.1\r\n\r\n").await;
    assert!(!received.contains("HTTP"), "{received}");
    failures_reach(&server, 1).await;
    assert_eq!(server.client().await.get("/").await.expect("an answer").text, "fine");
}

#[tokio::test]
async fn sessions_are_resumed_in_both_versions() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let server = server();
        let mut config = trusting_by(&server.ca_pem, &[version]);
        config.resumption = Resumption::in_memory_sessions(8);
        let config = Arc::new(config);
        let mut first =
            soon(Client::connect(server.address, Arc::clone(&config))).await.expect("a connection");
        assert_eq!(first.handshake, HandshakeKind::Full);
        // In TLS 1.3 tickets come after the handshake, with the first answer at the latest.
        first.get("/").await.expect("an answer");
        let second = soon(Client::connect(server.address, config)).await.expect("a connection");
        assert_eq!(second.handshake, HandshakeKind::Resumed, "{version:?}");
    }
}
