//! The end: nothing that was asked stays without an answer.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::CONNECTION;
use otel_webhook_server::Health;
use tokio::net::TcpStream;

use super::harness::{Hold, Server, soon, until};
use crate::binary::Binary;

#[tokio::test]
async fn a_request_in_flight_is_answered_and_idle_connections_end() {
    let hold = Hold::default();
    let server = Server::of(hold.router());
    let mut idle = server.client().await;
    idle.get("/").await.expect("an answer");
    let mut busy = server.client().await;
    let asking = tokio::spawn(async move { busy.get("/hold").await });
    soon(hold.entered.notified()).await;

    server.shutdown.stop();

    soon(idle.connection).await.expect("no panic").expect("a clean end");
    until(async || TcpStream::connect(server.address).await.is_err()).await;
    assert!(!server.served.is_finished());
    hold.released.notify_one();
    let answer = soon(asking).await.expect("no panic").expect("an answer");
    assert_eq!(answer.text, "answered");
    assert_eq!(answer.headers[CONNECTION], "close");
    soon(server.served).await.expect("an end without panic");
}

#[tokio::test]
async fn while_draining_everything_is_answered_but_connections_are_not_kept() {
    let server = Server::of(Hold::default().router());
    let health = Health::new();
    let mut old = server.client().await;
    let answer = old.get("/").await.expect("an answer");
    assert_eq!(answer.headers.get(CONNECTION), None);

    server.shutdown.drain(&health);

    assert_eq!(health.unmet(), ["shutdown: the process is shutting down"]);
    let answer = old.get("/").await.expect("an answer");
    assert_eq!((answer.status, answer.text.as_str()), (StatusCode::OK, "fine"));
    assert_eq!(answer.headers[CONNECTION], "close");
    soon(old.connection).await.expect("no panic").expect("a clean end");
    let answer = server.client().await.get("/").await.expect("an answer on a new connection");
    assert_eq!(answer.text, "fine");
    assert!(!server.served.is_finished());
}

#[tokio::test]
async fn a_request_that_never_ends_is_cut_off() {
    let hold = Hold::default();
    let server = Server::start(hold.router(), Arc::default(), |listening| listening, Duration::ZERO);
    let mut busy = server.client().await;
    let asking = tokio::spawn(async move { busy.get("/hold").await.map(|answer| answer.text) });
    soon(hold.entered.notified()).await;

    server.shutdown.stop();

    soon(server.served).await.expect("an end without panic");
    assert!(soon(asking).await.expect("no panic").is_err());
}

#[tokio::test]
async fn sighup_ends_the_program_as_sigterm_does() {
    for (signal, name) in [("HUP", "SIGHUP"), ("TERM", "SIGTERM")] {
        let mut binary = Binary::start(&[], &[]).await;
        let mut idle = binary.client().await;
        assert_eq!(idle.get("/").await.expect("an answer").status, StatusCode::NOT_FOUND);
        binary.signal(signal);
        soon(idle.connection).await.expect("no panic").expect("a clean end");
        assert!(binary.ended().await.success(), "{:?}", binary.log());
        assert!(binary.log().iter().any(|line| line["signal"] == name), "{:?}", binary.log());
    }
}
