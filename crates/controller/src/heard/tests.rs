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

/// Serves one response to each request by HTTPS, to those that have the token.
async fn serve_tls(pair: &otel_webhook_server::tls::SelfSigned, token: &'static str) -> std::net::SocketAddr {
    use std::sync::Arc;

    use hyper::{body::Incoming, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

    let chain = vec![CertificateDer::from_pem_slice(pair.certificate_pem.as_bytes()).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).expect("a key");
    let provider = Arc::new(otel_webhook_managed_certs::library::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a pair");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that does not trust it ends the handshake.
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let answer = service_fn(move |request: Request<Incoming>| async move {
                let own = request.headers().get(header::AUTHORIZATION).and_then(|own| own.to_str().ok());
                let (status, body) = if own == Some(&*format!("Bearer {token}")) {
                    (200, vector(&json!([{"instance": "shop.a.app"}])))
                } else {
                    (401, b"no token".to_vec())
                };
                let body = http_body_util::Full::new(Bytes::from(body));
                Ok::<_, Infallible>(Response::builder().status(status).body(body).expect("a response"))
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    address
}

#[tokio::test]
async fn a_source_is_verified_by_the_ca_file_and_gets_the_token_of_the_file() {
    let pair = otel_webhook_server::tls::SelfSigned::generate(&["localhost"]).expect("a pair");
    let other = otel_webhook_server::tls::SelfSigned::generate(&["localhost"]).expect("a pair");
    let address = serve_tls(&pair, "secret").await;
    let dir = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).expect("it is writable");
        Some(path)
    };
    let (ca, foreign) = (file("ca", &pair.ca_pem), file("foreign", &other.ca_pem));
    let (token, wrong) = (file("token", "secret\n"), file("wrong", "guess"));
    let asked = async |ca: &Option<PathBuf>, token: &Option<PathBuf>, host: &str| {
        let url = format!("https://{host}:{}", address.port()).parse().expect("a URL");
        let settings = HeardSettings { url, ca: ca.clone(), token: token.clone(), ..settings(prometheus()) };
        ask(&client(&settings)?, &settings).await
    };
    assert_eq!(asked(&ca, &token, "localhost").await, Ok(ids(&["shop.a.app"])));
    for (what, ca, token, host, expected) in [
        ("another CA", &foreign, &token, "localhost", "invalid peer certificate"),
        ("another name", &ca, &token, "127.0.0.1", "invalid peer certificate"),
        ("another token", &ca, &wrong, "localhost", "status 401 Unauthorized: no token"),
        ("no token", &ca, &None, "localhost", "status 401 Unauthorized"),
    ] {
        let problem = asked(ca, token, host).await.expect_err(what);
        assert!(problem.contains(expected), "{what}: {problem}");
    }
    // Both are read for each request.
    fs::write(dir.path().join("wrong"), "secret").expect("it is writable");
    assert_eq!(asked(&ca, &wrong, "localhost").await, Ok(ids(&["shop.a.app"])));
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_for_a_source_that_does_not_answer() {
    // It accepts connections and is silent.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address")).parse().expect("a URL");
    let mut listening = Listening::begin(&HeardSettings { url, ..settings(prometheus()) });
    let (mut census, begin) = (Census::default(), tokio::time::Instant::now());
    // What the controller calls with each count returns at once, until the deadline.
    assert!(listening.take(&mut census).is_none() && begin.elapsed() == Duration::ZERO);
    let problem = loop {
        match listening.take(&mut census) {
            Some((_, problem)) => break problem,
            None => sleep(Duration::from_secs(1)).await,
        }
    };
    assert_eq!(problem.as_deref(), Some("no response within 20s"));
}
