//! A log that nobody reads.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use futures::future::join_all;
use otel_webhook_server::tls::{DEFAULT_NAMES, SelfSigned};
use serde_json::Value;

use super::harness::{Client, count, send_plain, trusting, until};

const METRICS: &[u8] = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

/// Ends with the test, whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().expect("the program can be stopped");
        self.0.wait().expect("the program ends");
    }
}

/// Where the program listens, as it says itself.
fn address(log: &mut impl BufRead, port: &str) -> SocketAddr {
    loop {
        let mut line = String::new();
        assert_ne!(log.read_line(&mut line).expect("a line"), 0, "it ended");
        let line: Value = serde_json::from_str(&line).expect("JSON");
        if line["message"] == format!("listening for {port}") {
            return line["address"].as_str().expect("an address").parse().expect("an address");
        }
    }
}

#[tokio::test]
async fn a_log_that_nobody_reads_delays_neither_requests_nor_the_end() {
    // Standard output and error of a container with a terminal are the same, too.
    let (log, output) = io::pipe().expect("a pipe");
    let child = Command::new(env!("CARGO_BIN_EXE_otel-webhook"))
        .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--tls-self-signed"])
        .args(["--source", "examples", "--shutdown-delay", "0", "--log-format", "json", "--log", "trace"])
        .stdin(Stdio::null())
        .stdout(output.try_clone().expect("a descriptor"))
        .stderr(output)
        .spawn()
        .expect("the program starts");
    let mut running = Running(child);
    let mut log = BufReader::new(log);
    let [webhook, admin] = ["webhook", "admin"].map(|port| address(&mut log, port));
    // From here on the pipe is not read: it fills, then the queue does, and then lines are dropped.
    let other = SelfSigned::generate(&DEFAULT_NAMES).expect("a pair");
    let config = Arc::new(trusting(&other.ca_pem));
    until(async || {
        // Handshakes have many lines. The client does not trust the certificate.
        let handshakes = (0..20).map(|_| Client::connect(webhook, Arc::clone(&config)));
        join_all(handshakes).await;
        let metrics = send_plain(admin, METRICS).await;
        assert!(metrics.starts_with("HTTP/1.1 200 OK"), "{metrics}");
        count(&metrics, "otel_webhook_log_lines_dropped_total") > 0
    })
    .await;

    let kill = format!("kill -TERM {}", running.0.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());

    until(async || running.0.try_wait().expect("a child").is_some()).await;
    assert!(running.0.wait().expect("it has ended").success());
    drop(log);
}
