//! Connections: how many there may be, and who is closed for another.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use hyper::StatusCode;
use otel_webhook_server::Listening;
use tokio::net::{TcpSocket, TcpStream};

use super::harness::{Hold, Server, count, send_plain, soon, until};
use crate::binary::Binary;

const REVIEW: &[u8] = include_bytes!("review.json");

fn limited(router: Router, most: usize) -> Server {
    let limit = |listening: Listening| listening.with_max_connections(most);
    Server::start(router, Arc::default(), limit, Duration::ZERO)
}

#[tokio::test]
async fn an_idle_connection_is_closed_for_a_new_one() {
    let server = limited(Router::new().route("/", get(async || "fine")), 1);
    let mut first = server.client().await;
    assert_eq!(first.get("/").await.expect("an answer").text, "fine");
    let mut second = server.client().await;
    soon(first.connection).await.expect("no panic").expect("a clean end");
    assert_eq!(second.get("/").await.expect("an answer").text, "fine");
}

#[tokio::test]
async fn a_request_in_flight_is_not_closed_for_a_new_connection() {
    let hold = Hold::default();
    let server = limited(hold.router(), 1);
    let mut busy = server.client().await;
    let asking = tokio::spawn(async move { busy.get("/hold").await });
    soon(hold.entered.notified()).await;
    // Closed at once, so that the client tries another replica.
    let mut plain = std::net::TcpStream::connect(server.address).expect("the backlog accepts it");
    let closed = tokio::task::spawn_blocking(move || std::io::Read::read(&mut plain, &mut [0; 1]));
    assert!(matches!(soon(closed).await.expect("no panic"), Ok(0) | Err(_)));
    hold.released.notify_one();
    assert_eq!(soon(asking).await.expect("no panic").expect("an answer").text, "answered");
}

/// How many connections this process can open: 10,000 if its limit of files allows it.
fn many() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").expect("procfs");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("the limit");
    let soft = line.split_whitespace().next().expect("a value").parse().unwrap_or(usize::MAX);
    soft.saturating_sub(1_000).clamp(100, 10_000)
}

/// Opens idle connections: a half from one address, a half from 200 others.
async fn flood(address: SocketAddr, number: usize) -> Vec<TcpStream> {
    let mut idle = Vec::with_capacity(number);
    for at in 0..number {
        let socket = TcpSocket::new_v4().expect("a socket");
        let last = u8::try_from(1 + at / 2 % 200).expect("at most 200");
        let from = if at % 2 == 0 { Ipv4Addr::LOCALHOST } else { Ipv4Addr::new(127, 0, 1, last) };
        socket.bind(SocketAddr::from((from, 0))).expect("an address of loopback");
        idle.push(soon(socket.connect(address)).await.expect("a connection"));
    }
    idle
}

async fn admin(address: SocketAddr, request: &'static str) -> String {
    send_plain(address, request.as_bytes()).await
}

const LIVEZ: &str = "GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
const METRICS: &str = "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn ten_thousand_idle_connections_on_either_port_hold_up_nobody() {
    let number = many();
    let mut binary = Binary::start(&[], &[]).await;
    let (webhook, health) = (binary.address("webhook").await, binary.address("admin").await);
    // As the API server's connection: it has served a review before the others came.
    let mut kept = binary.client().await;
    assert_eq!(kept.review(REVIEW).await.expect("an answer").status, StatusCode::OK);
    for (port, address, most) in [("webhook", webhook, 1024), ("admin", health, 256)] {
        let idle = flood(address, number).await;
        assert!(admin(health, LIVEZ).await.starts_with("HTTP/1.1 200 OK"));
        let mut fresh = binary.client().await;
        assert_eq!(fresh.review(REVIEW).await.expect("an answer").status, StatusCode::OK);
        assert_eq!(kept.review(REVIEW).await.expect("an answer").status, StatusCode::OK);
        let metrics = admin(health, METRICS).await;
        let open = count(&metrics, &format!("otel_webhook_connections{{port=\"{port}\"}}"));
        assert!(open <= most, "{open}");
        let closed = format!("otel_webhook_connections_closed_total{{port=\"{port}\",reason=\"Idle\"}}");
        let closed = count(&metrics, &closed);
        assert!(closed + most >= u64::try_from(number).expect("a number"), "{closed} of {number} closed");
        drop(idle);
    }
}

#[tokio::test]
async fn the_ports_of_the_controller_limit_and_count_connections() {
    let mut controller = Binary::controller();
    let page = controller.address("page").await;
    let mut kept = Vec::new();
    for _ in 0..40 {
        kept.push(TcpStream::connect(page).await.expect("a connection"));
    }
    let counts = [
        "otel_webhook_connections{port=\"page\"} 8",
        "otel_webhook_connections_closed_total{port=\"page\",reason=\"Idle\"} 32",
        "otel_webhook_connections{port=\"admin\"} 1",
    ];
    let mut metrics = String::new();
    until(async || {
        metrics = controller.metrics().await;
        counts.iter().all(|count| metrics.lines().any(|line| line == *count))
    })
    .await;
    let admin = controller.address("admin").await;
    let alive = send_plain(admin, b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(alive.starts_with("HTTP/1.1 200 "), "without an API server: {alive}");
}
