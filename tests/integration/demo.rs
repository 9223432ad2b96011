//! `otel-webhook demo`: what somebody sees who tries the product first.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use serde_json::Value;

use crate::server::harness::{Client, soon, trusting};

fn demo() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_otel-webhook"));
    command.arg("demo").stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

#[test]
fn it_shows_the_pod_as_a_diff_and_the_reasons() {
    let ran = demo().output().expect("the program runs");
    let text = String::from_utf8(ran.stdout).expect("text");
    assert!(ran.status.success(), "{text}");
    for line in [
        "+    otel-webhook/injected: \"true\"",
        "+    - name: opentelemetry-auto-instrumentation-java",
        "+    - name: opentelemetry-auto-instrumentation-extension-0",
        "CONTAINER  LANGUAGE  OUTCOME   INSTRUMENTATION  REASON",
        "order      java      Injected  shop/order       injected",
        "What to try next:",
    ] {
        assert!(text.lines().any(|shown| shown.starts_with(line)), "{line} is not in\n{text}");
    }
    assert!(!text.contains("warning"), "{text}");
    assert!(!text.contains('\u{1b}'), "colour without a terminal");
}

#[tokio::test]
async fn it_keeps_serving_until_a_signal_and_its_curl_line_works() {
    let mut running = demo().arg("--serve").stdout(Stdio::piped()).spawn().expect("the program starts");
    let output = BufReader::new(running.stdout.take().expect("its output"));
    let line = tokio::task::spawn_blocking(|| {
        let mut lines = output.lines().map_while(Result::ok);
        lines.find(|line| line.trim_start().starts_with("curl "))
    });
    let line = soon(line).await.expect("no panic").expect("a curl line");
    let word = |after: &str| {
        line.split_once(after).and_then(|(_, rest)| rest.split(' ').next()).expect("a word").to_owned()
    };
    let (ca, review) = (word("--cacert "), word("--data-binary @"));
    let port =
        word("https://localhost:").split('/').next().and_then(|port| port.parse().ok()).expect("a port");
    let ca_pem = fs::read_to_string(&ca).expect("the authority");
    let body = fs::read_to_string(&review).expect("the review");
    let mut client =
        Client::connect(([127, 0, 0, 1], port).into(), Arc::new(trusting(&ca_pem))).await.expect("trusted");
    let answer = client.review(body).await.expect("an answer");
    let answer: Value = serde_json::from_str(&answer.text).expect("JSON");
    assert_eq!(answer["response"]["patchType"], "JSONPatch");

    let pid = running.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    let ended = tokio::task::spawn_blocking(move || running.wait());
    assert!(soon(ended).await.expect("no panic").expect("it ends").success());
    assert!(!Path::new(&ca).exists(), "the files of the demo are left behind");
}
