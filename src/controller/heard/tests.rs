use std::convert::Infallible;

use futures::stream;
use http_body_util::StreamBody;
use hyper::{Response, body::Frame};
use serde_json::json;

use super::*;

fn settings(asked: Asked) -> HeardSettings {
    HeardSettings {
        asked,
        url: Uri::from_static("http://metrics.example:9090"),
        interval: Duration::from_secs(30),
        patience: SignedDuration::from_mins(5),
        signals: Signals::default(),
        ca: None,
        token: None,
        lease: ObjectName { namespace: "otel".into(), name: "lease".into() },
    }
}

/// Asks a source that answers this, in pieces.
async fn answered(asked: Asked, status: u16, pieces: Vec<Vec<u8>>) -> Result<HashSet<u64>, String> {
    let answer = move |_: Request<Body>| {
        let frames =
            pieces.clone().into_iter().map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from(piece))));
        let body = StreamBody::new(stream::iter(frames));
        async move { Ok::<_, Infallible>(Response::builder().status(status).body(body).expect("a response")) }
    };
    ask(&Client::new(tower::service_fn(answer), "default"), &settings(asked)).await
}

fn ids(own: &[&str]) -> HashSet<u64> {
    own.iter().map(|id| instance(id)).collect()
}

fn prometheus() -> Asked {
    Asked::Prometheus(QUERY.to_owned())
}

fn vector(metrics: &serde_json::Value) -> Vec<u8> {
    let series = metrics.as_array().expect("a list").iter();
    let series: Vec<_> = series.map(|metric| json!({"metric": metric, "value": [1, "1"]})).collect();
    let data = json!({"resultType": "vector", "result": series});
    json!({"status": "success", "data": data}).to_string().into_bytes()
}

#[tokio::test]
async fn instances_are_read_by_any_of_three_labels() {
    let metrics = json!([
        {"instance": "shop.a.app"},
        {"exported_instance": "shop.b.app", "instance": "10.0.0.1:8889", "job": "x"},
        {"service_instance_id": "shop.c.\u{e9}\"\n"},
        {},
    ]);
    let bytes = vector(&metrics);
    let expected = ids(&["shop.a.app", "shop.b.app", "10.0.0.1:8889", "shop.c.\u{e9}\"\n"]);
    let pieces = bytes.iter().map(|byte| vec![*byte]).collect();
    assert_eq!(answered(prometheus(), 200, pieces).await, Ok(expected));

    let text = "# HELP traces_total number\ntraces_total{a=\"b\",service_instance_id=\"shop.a.app\"} 4\nup 1\n\
        traces_total{service_instance_id=\"shop.b.app\"} 3 1700000000000\n\
        traces_total{a=\",service_instance_id=\\\"shop.c.app\\\"\"} 3\n";
    let pieces = text.as_bytes().chunks(7).map(<[u8]>::to_vec).collect();
    assert_eq!(answered(Asked::Collector, 200, pieces).await, Ok(ids(&["shop.a.app", "shop.b.app"])));
}

#[tokio::test]
async fn what_is_no_answer_is_an_error() {
    let many: Vec<_> = (0..=MOST).map(|number| json!({"instance": number.to_string()})).collect();
    let spaces = vec![vec![b' '; 1 << 20]; (LONGEST >> 20) + 1];
    let html = || b"<!DOCTYPE html>\n<html>".to_vec();
    for (what, asked, status, pieces, expected) in [
        (
            "an error",
            prometheus(),
            400,
            vec![b"parse error\n".to_vec()],
            "status 400 Bad Request: parse error\\n",
        ),
        ("a redirect", prometheus(), 302, vec![], "status 302 Found"),
        ("no token", Asked::Collector, 401, vec![], "status 401 Unauthorized"),
        ("a page", prometheus(), 200, vec![html()], "expected value at line 1"),
        (
            "a part",
            prometheus(),
            200,
            vec![vector(&json!([{"instance": "a"}]))[..60].to_vec()],
            "EOF while parsing",
        ),
        ("nothing", prometheus(), 200, vec![], "EOF while parsing"),
        (
            "no data",
            prometheus(),
            200,
            vec![b"{\"status\":\"error\",\"error\":\"too slow\"}".to_vec()],
            "no result: too slow",
        ),
        ("a scalar", prometheus(), 200, vec![b"{\"data\":{\"result\":[1,\"1\"]}}".to_vec()], "invalid type"),
        ("too many series", prometheus(), 200, vec![vector(&json!(many))], "more than 200000 series"),
        ("too many bytes", prometheus(), 200, spaces.clone(), "longer than 33554432 bytes"),
        ("a page for browsers", Asked::Collector, 200, vec![html()], "not a text endpoint of Prometheus"),
        ("a long line", Asked::Collector, 200, spaces, "a line is longer than 65536 bytes"),
        ("no text", Asked::Collector, 200, vec![vec![0xff, b'\n']], "invalid utf-8"),
    ] {
        let problem = answered(asked, status, pieces).await.expect_err(what);
        assert!(problem.contains(expected), "{what}: {problem}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_fails_makes_all_unknown_and_is_reported_once() {
    // The port is one that nothing listens on.
    let unused = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = unused.local_addr().expect("an address");
    drop(unused);
    let url = format!("http://{address}").parse().expect("a URL");
    let mut listening = Listening::begin(&HeardSettings { url, ..settings(prometheus()) });
    let mut census = Census::default();
    let mut problems = Vec::new();
    while problems.len() < 3 {
        match listening.take(&mut census) {
            Some((_, problem)) => problems.push(problem),
            None => sleep(Duration::from_millis(100)).await,
        }
    }
    let [Some(first), None, None] = &problems[..] else { panic!("reported once: {problems:?}") };
    assert!(first.contains("refused"), "{first}");
    assert!(listening.problem.is_some());
}

#[test]
fn a_response_needs_a_fraction_of_its_length() {
    const PODS: usize = 50_000;
    let pods = (0..PODS)
        .map(|number| json!({"instance": format!("namespace-of-a-team.deployment-5d4f-{number}.app")}));
    let bytes = Bytes::from(vector(&pods.collect()));
    let length = bytes.len();
    let (sender, frames) = mpsc::channel(1);
    sender.try_send(Ok(bytes)).expect("there is room");
    drop(sender);
    let received = Received { frames, current: Bytes::new(), left: LONGEST };
    let mut found = HashSet::new();
    let needed = allocation_counter::measure(|| found = read_query(received).expect("a response"));
    println!("{length} bytes are read with {} bytes", needed.bytes_max);
    assert_eq!(found.len(), PODS);
    assert!(needed.bytes_max <= 4 << 20, "{} bytes", needed.bytes_max);
}
