//! Certificates that change on disk while connections go on.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use otel_webhook_server::tls::{DEFAULT_NAMES, Files, SelfSigned};

use super::harness::{Server, soon, trusting, until};
use otel_webhook_testkit::cluster::secret_volume::SecretVolume;

const OFTEN: Duration = Duration::from_millis(5);

fn pair() -> SelfSigned {
    SelfSigned::generate(&DEFAULT_NAMES).expect("a pair")
}

/// A server that follows the files of `volume`, which hold what it serves.
async fn following(volume: &SecretVolume) -> Server {
    let server = Server::of(Router::new().route("/", get(async || "fine")));
    let mut files = Files::certificate(volume.certificate(), volume.key());
    server.certificate.replace(files.load().await.expect("a good pair"));
    let (current, metrics) = (Arc::clone(&server.certificate), Arc::clone(&server.metrics));
    let replace = move |certificate| current.replace(certificate);
    tokio::spawn(files.follow(replace, metrics, OFTEN, server.shutdown.stopping()));
    server
}

#[tokio::test]
async fn a_swapped_certificate_is_shown_to_new_connections_only() {
    let (first, second) = (pair(), pair());
    let mut volume = SecretVolume::new(&first.certificate_pem, &first.key_pem);
    let server = following(&volume).await;
    let mut old = server.client_with(trusting(&first.ca_pem)).await.expect("a connection");
    assert_eq!(old.get("/").await.expect("an answer").text, "fine");

    volume.swap(&second.certificate_pem, &second.key_pem);

    until(async || server.client_with(trusting(&second.ca_pem)).await.is_ok()).await;
    let new = server.client_with(trusting(&second.ca_pem)).await.expect("a connection");
    assert_ne!(new.leaf, old.leaf);
    assert_eq!(old.get("/").await.expect("an answer").text, "fine");
    let refused = server.client_with(trusting(&first.ca_pem)).await;
    assert!(refused.is_err(), "the old certificate is still shown");

    // A second swap: a watch on the first target would be blind by now.
    volume.swap(&first.certificate_pem, &first.key_pem);
    until(async || server.client_with(trusting(&first.ca_pem)).await.is_ok()).await;
}

#[tokio::test]
async fn a_bad_pair_keeps_the_old_one_and_is_counted() {
    // A read may fall between two swaps, so that no two of them may make a good pair together.
    let (first, second, third) = (pair(), pair(), pair());
    let mut volume = SecretVolume::new(&first.certificate_pem, &first.key_pem);
    let server = following(&volume).await;
    let half = &third.certificate_pem[..third.certificate_pem.len() / 2];
    let mut seen = failures(&server);
    for (certificate, key) in
        [(second.certificate_pem.as_str(), first.key_pem.as_str()), (half, third.key_pem.as_str()), ("", "")]
    {
        volume.swap(certificate, key);
        // The second look began after the swap, whatever the first had read.
        until(async || failures(&server) >= seen + 2).await;
        seen = failures(&server);
        let mut client = server.client_with(trusting(&first.ca_pem)).await.expect("a connection");
        assert_eq!(client.get("/").await.expect("an answer").text, "fine");
    }
    volume.swap(&second.certificate_pem, &second.key_pem);
    until(async || server.client_with(trusting(&second.ca_pem)).await.is_ok()).await;
}

#[tokio::test]
async fn a_certificate_that_is_gone_for_a_while_keeps_the_old_one() {
    let first = pair();
    let volume = SecretVolume::new(&first.certificate_pem, &first.key_pem);
    let server = following(&volume).await;
    fs::rename(volume.path().join("..data"), volume.path().join("..away")).expect("a rename");
    until(async || failures(&server) > 0).await;
    let mut client = soon(server.client_with(trusting(&first.ca_pem))).await.expect("a connection");
    assert_eq!(client.get("/").await.expect("an answer").text, "fine");
}

fn failures(server: &Server) -> u64 {
    server.count("otel_webhook_certificate_reload_failures_total")
}
