//! `check`, as far as it needs no cluster.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use otel_webhook_server::tls::{DEFAULT_NAMES, SelfSigned};
use serde_json::Value;

use super::{Run, run};
use crate::server::harness::Server;

/// Runs `check --review` next to a server.
async fn review(arguments: Vec<String>) -> Run {
    let run = move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run(&[&["check", "--review"], &arguments[..]].concat(), "")
    };
    tokio::task::spawn_blocking(run).await.expect("no panic")
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("UTF-8").to_owned()
}

fn levels(run: &Run) -> Vec<(String, String)> {
    let level = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    };
    // The sum, and after it the links to the runbook.
    let is_result = |line: &&str| !line.starts_with(|first: char| first.is_ascii_digit());
    run.out.lines().take_while(is_result).map(level).collect()
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(level, check)| ((*level).to_owned(), (*check).to_owned())).collect()
}

#[tokio::test]
async fn a_webhook_that_answers_with_the_right_certificate_is_fine() {
    let server = Server::webhook();
    let folder = tempfile::tempdir().expect("a folder");
    let ca = file(folder.path(), "ca.crt", &server.ca_pem);
    let url = format!("https://localhost:{}", server.address.port());
    let run = review(vec![url.clone(), "--ca".to_owned(), ca.clone(), "--strict".to_owned()]).await;
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert_eq!(levels(&run), owned(&[("ok", "connection"), ("ok", "certificate"), ("ok", "answer")]));
    assert!(run.out.contains("/mutate-v1-pod: responded correctly in "), "{}", run.out);

    let run = review(vec![url, "--ca".to_owned(), ca, "-o".to_owned(), "json".to_owned()]).await;
    let codes: Vec<Value> = run
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["code"].clone())
        .collect();
    assert_eq!(codes, ["Connected", "Verified", "Answered"]);
}

#[tokio::test]
async fn a_certificate_that_nobody_verifies_is_a_warning() {
    let server = Server::webhook();
    let url = format!("https://127.0.0.1:{}/mutate-v1-pod", server.address.port());
    let run = review(vec![url.clone()]).await;
    assert_eq!(run.code, 0, "{}", run.out);
    let expected = owned(&[("ok", "connection"), ("warning", "certificate"), ("ok", "answer")]);
    assert_eq!(levels(&run), expected, "{}", run.out);
    assert!(run.out.contains("it is for localhost, 127.0.0.1, ::1, valid until 2"), "{}", run.out);
    assert!(
        run.out.lines().any(|line| line.ends_with("/docs/operations/runbook.md#notverified")),
        "{}",
        run.out
    );
    assert_eq!(review(vec![url, "--strict".to_owned()]).await.code, 1);
}

#[tokio::test]
async fn nothing_is_sent_to_a_server_that_is_not_trusted() {
    let server = Server::webhook();
    let folder = tempfile::tempdir().expect("a folder");
    let other = SelfSigned::generate(&DEFAULT_NAMES).expect("a pair");
    let ca = file(folder.path(), "ca.crt", &other.ca_pem);
    let url = format!("https://localhost:{}", server.address.port());
    let run = review(vec![url, "--ca".to_owned(), ca]).await;
    assert_eq!(run.code, 1);
    assert_eq!(levels(&run), owned(&[("ok", "connection"), ("failure", "certificate")]));
    assert!(run.out.contains("no CA of the bundle signed the certificate"), "{}", run.out);
}

#[tokio::test]
async fn a_wrong_path_and_a_closed_port_are_failures() {
    let server = Server::webhook();
    let url = format!("https://localhost:{}/other", server.address.port());
    let run = review(vec![url]).await;
    assert_eq!(run.code, 1);
    assert!(run.out.contains("/other: the status is 404 Not Found: unknown path /other"), "{}", run.out);

    let free =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    let run = review(vec![format!("https://127.0.0.1:{free}")]).await;
    assert_eq!((run.code, levels(&run)), (1, owned(&[("failure", "connection")])));
    assert!(run.out.contains(&format!("cannot connect to 127.0.0.1:{free}: ")), "{}", run.out);
}

#[test]
fn what_cannot_be_checked_ends_with_two() {
    let refused = run(&["check", "--review", "http://localhost"], "");
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("API servers call webhooks over https only"), "{}", refused.err);
    let unreadable = run(&["check", "--review", "https://localhost", "--ca", "/nowhere/ca.crt"], "");
    assert_eq!((unreadable.code, &*unreadable.out), (2, ""));
    assert!(unreadable.err.contains("/nowhere/ca.crt: "), "{}", unreadable.err);
    let none = run(&["check", "--kubeconfig", "/nowhere/config"], "");
    assert_eq!((none.code, &*none.out), (2, ""));
    assert!(
        none.err.contains("cannot connect to a cluster: ") && none.err.contains("/nowhere/config"),
        "{}",
        none.err
    );
}

/// A kubeconfig for a cluster at a URL.
fn kubeconfig(folder: &Path, server: &str) -> String {
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         clusters: [{{name: a, cluster: {{server: \"{server}\"}}}}]\n\
         users: [{{name: a, user: {{token: t}}}}]\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
    );
    file(folder, "config", &config)
}

#[test]
fn a_cluster_behind_a_proxy_is_asked_by_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = kubeconfig(folder.path(), "https://cluster.invalid:6443");
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = proxy.local_addr().expect("bound");
    let mut child = Command::new(env!("CARGO_BIN_EXE_otel-webhook"))
        .args(["check", "--kubeconfig", &config])
        .env("HTTPS_PROXY", format!("http://{address}"))
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    let (stream, _) = proxy.accept().expect("a connection");
    BufReader::new(stream).read_line(&mut line).expect("a request");
    assert_eq!(line, "CONNECT cluster.invalid:6443 HTTP/1.1\r\n");
    // Whoever tries again is told that nobody listens any more.
    drop(proxy);
    assert_eq!(child.wait().expect("it ends").code(), Some(2), "the proxy hung up");
}
