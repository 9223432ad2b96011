//! Whether data of injected pods arrives: a real Prometheus and a real Collector, to which the test sends what agents send,
//! by OTLP.

use std::{
    fs,
    io::{self, Write},
    net::{SocketAddr, TcpStream},
};

use jiff::Timestamp;
use otel_webhook_testkit::{
    admin,
    cluster::{created::Created, ports::free_ports, program::Program},
    objects::items,
    source::{self, HEAD, Source, series},
    until::until,
};
use serde_json::{Value, json};

use super::status;
use crate::{
    audit,
    cluster::Cluster,
    controller::{self, ACCOUNT, Controller, deployment},
    program::{output, program},
};

const SHOP: &str = "heard-shop";

/// Where Prometheus takes metrics by OTLP.
const PROMETHEUS_OTLP: &str = "/api/v1/otlp/v1/metrics";

/// A Prometheus that takes OTLP.
fn prometheus(cluster: &Cluster, address: SocketAddr) -> Program {
    let dir = cluster.plane.dir();
    fs::write(dir.join("prometheus.yml"), "{}").expect("the scratch folder is writable");
    let options = format!(
        "--config.file={0}/prometheus.yml\n--storage.tsdb.path={0}/prometheus\n--web.listen-address={address}\n\
         --web.enable-otlp-receiver",
        dir.display()
    );
    let program = cluster.plane.spawn("prometheus", &options);
    until("Prometheus is ready", || admin::body(address, "/-/ready"));
    program
}

/// The resource of an instance, with the attributes that injection sets.
fn resource(pod: &str) -> Value {
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    json!({"attributes": [
        attribute("service.name", "order"),
        attribute("service.namespace", SHOP),
        attribute("service.instance.id", &format!("{SHOP}.{pod}.app")),
        attribute("k8s.pod.name", pod),
    ]})
}

fn send(source: SocketAddr, path: &str, body: &Value) {
    let sent = admin::post(source, path, &body.to_string());
    assert!(sent.as_ref().is_some_and(|(is_ok, _)| *is_ok), "{sent:?}");
}

/// Sends a metric of an instance, as an agent does.
fn export(source: SocketAddr, path: &str, pod: &str) {
    let point = json!({"asDouble": 1.0, "timeUnixNano": Timestamp::now().as_nanosecond().to_string()});
    let metric = json!({"name": "jvm.thread.count", "gauge": {"dataPoints": [point]}});
    let of_resource = json!({"resource": resource(pod), "scopeMetrics": [{"metrics": [metric]}]});
    send(source, path, &json!({"resourceMetrics": [of_resource]}));
}

/// Sends a span of an instance to a Collector.
fn export_span(collector: SocketAddr, pod: &str) {
    let now = Timestamp::now().as_nanosecond().to_string();
    let span = json!({
        "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "GET /", "kind": 2,
        "startTimeUnixNano": now, "endTimeUnixNano": now,
    });
    let of_resource = json!({"resource": resource(pod), "scopeSpans": [{"spans": [span]}]});
    send(collector, "/v1/traces", &json!({"resourceSpans": [of_resource]}));
}

/// Writes that a pod has been Ready for an hour, as its kubelet does.
fn ready(cluster: &Cluster, pod: &str) {
    let since = Timestamp::from_second(Timestamp::now().as_second() - 3600).expect("a time").to_string();
    let condition = json!({"type": "Ready", "status": "True", "lastTransitionTime": since});
    let patch = json!({"status": {"phase": "Running", "conditions": [condition]}}).to_string();
    let args = ["patch", "pod", pod, "--namespace", SHOP, "--subresource=status", "--type=merge", "--patch"];
    cluster.run(&[&args[..], &[&patch]].concat());
}

fn condition(object: &Value) -> (String, String) {
    let is_meant = |condition: &&Value| condition["type"] == "DataArrives";
    let condition = items(&object["status"]["conditions"]).find(is_meant).expect("the condition");
    let text = |field: &str| condition[field].as_str().expect("a text").to_owned();
    (text("status"), text("reason"))
}

fn has_event(cluster: &Cluster, namespace: &str, kind: &str, name: &str, reason: &str) -> bool {
    let events = cluster.get(namespace, &["events.events.k8s.io"]);
    items(&events["items"]).any(|event| {
        let about = &event["regarding"];
        about["kind"] == kind && about["name"] == name && event["reason"] == reason
    })
}

/// Returns the Events that tell that a source is unavailable.
fn source_events(cluster: &Cluster) -> Vec<Value> {
    let events = cluster.get("otel-webhook", &["events.events.k8s.io"]);
    items(&events["items"]).filter(|event| event["reason"] == "SourceUnavailable").cloned().collect()
}

/// Only accepts connections.
fn mute(stream: &mut TcpStream) -> io::Result<()> {
    io::copy(stream, &mut io::sink()).map(drop)
}

/// Answers with a page for browsers.
fn page(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(&[HEAD, b"<!DOCTYPE html>\n"].concat())
}

/// Labels that are no instance of a pod, as tenants may have them: long, and with what is escaped.
fn hostile() -> Vec<String> {
    let long = "a".repeat(1 << 20);
    let escaped = "\0\"\\\n</script>\u{202e}\u{10ffff}".repeat(1000);
    [long, escaped, String::new(), "..".to_owned(), format!("{SHOP}..")].into()
}

/// A controller that asks a source.
fn asking<'c>(cluster: &'c Cluster, kind: &str, address: SocketAddr) -> Controller<'c> {
    let flags = [
        format!("--heard-source={kind}"),
        format!("--heard-url=http://{address}/graph"),
        "--heard-interval=1s".to_owned(),
        "--heard-patience=1s".to_owned(),
    ];
    Controller::new(cluster).and(flags)
}

/// Makes a Deployment with so many pods, which are Ready.
fn ready_pods(cluster: &Cluster, count: usize) -> Vec<Created> {
    cluster.apply(&deployment(SHOP, "order", count));
    let pods = cluster.pods_of(SHOP, "app=order", count);
    for pod in &pods {
        ready(cluster, pod.name());
    }
    pods
}

/// Sources that are slow, wrong, endless, or have hostile labels delay no status, and no pod is silent because of them.
/// One Event tells of those that give no answer.
pub fn by_sources_that_fail(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    let endless: Source = Box::new(|stream| series(stream, (0_u64..).map(|number| number.to_string())));
    let rows: [(&str, Source, &str); 3] = [
        ("prometheus", Box::new(mute), "no response within 20s"),
        ("collector", Box::new(page), "not a text endpoint of Prometheus"),
        ("prometheus", endless, "more than 200000 series"),
    ];
    for (number, (kind, responds, expected)) in rows.into_iter().enumerate() {
        let controller = asking(cluster, kind, source::start(responds));
        controller.start();
        let count = number + 1;
        ready_pods(cluster, count);
        let found = controller.expect(SHOP, "default", &json!({"matched": count, "injected": count}));
        assert_eq!(condition(&found), ("Unknown".to_owned(), "NotKnown".to_owned()), "{kind}");
        until(expected, || {
            let incomplete = controller.report()?["incomplete"].to_string();
            (incomplete.contains(expected) && !source_events(cluster).is_empty()).then_some(())
        });
        controller.stop();
    }
    // Once an hour, whatever is wrong with the source.
    let events = source_events(cluster);
    let note = events[0]["note"].as_str().expect("a note");
    assert!(events.len() == 1 && note.contains("no response within 20s"), "{events:?}");
    let pods = ready_pods(cluster, 4);
    let own = pods.iter().map(|pod| format!("{SHOP}.{}.app", pod.name()));
    let instances: Vec<_> = hostile().into_iter().chain(own).chain(hostile()).collect();
    let answers: Source = Box::new(move |stream| series(stream, instances.iter().cloned()));
    let controller = asking(cluster, "prometheus", source::start(answers));
    controller.start();
    controller.expect(SHOP, "default", &json!({"matched": 4, "injected": 4, "heard": 4}));
    controller.stop();
}

/// A pod is heard after its first export, one that exports nothing is silent after the patience, and nothing is known
/// while Prometheus is unavailable.
pub fn by_prometheus(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    let pods = ready_pods(cluster, 2);
    let [port] = free_ports();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut source = prometheus(cluster, address);
    export(address, PROMETHEUS_OTLP, pods[0].name());

    let flags = ["--heard-source=prometheus", "--heard-interval=1s", "--heard-patience=8s"];
    let flags = flags.map(str::to_owned).into_iter().chain([format!("--heard-url=http://{address}")]);
    let controller = Controller::new(cluster).and(flags);
    controller.start();
    let counts = json!({"matched": 2, "injected": 2, "heard": 1, "silent": 1});
    let found = controller.expect(SHOP, "default", &counts);
    assert_eq!(condition(&found), ("False".to_owned(), "PodsSilent".to_owned()));
    let metric = |data: &str| {
        controller.metric(&format!("otel_webhook_pods_data{{data=\"{data}\",language=\"java\"}}"))
    };
    assert_eq!(["heard", "silent", "unknown"].map(metric), [1, 1, 0].map(Some));
    until("an Event tells of it", || has_event(cluster, SHOP, "Deployment", "order", "Silent").then_some(()));

    let code = || status::of_namespace(cluster, SHOP, &["--silent"]).code;
    assert_eq!(code(), Some(1));

    export(address, PROMETHEUS_OTLP, pods[1].name());
    let found = controller.expect(SHOP, "default", &json!({"matched": 2, "injected": 2, "heard": 2}));
    assert_eq!(condition(&found), ("True".to_owned(), "PodsHeard".to_owned()));

    assert_eq!(code(), Some(0));

    source.stop();
    let found = controller.expect(SHOP, "default", &json!({"matched": 2, "injected": 2}));
    assert_eq!(condition(&found), ("Unknown".to_owned(), "NotKnown".to_owned()));
    assert_eq!(code(), Some(2));
    assert_eq!(controller.metric("otel_webhook_heard_source_up{source=\"prometheus\"}"), Some(0));
    let incomplete = controller.report().expect("a report")["incomplete"].to_string();
    assert!(incomplete.contains("whether data arrives is not known"), "{incomplete}");
    until("an Event tells of the source", || {
        has_event(cluster, "otel-webhook", "Lease", "otel-webhook-controller", "SourceUnavailable")
            .then_some(())
    });

    let _source = prometheus(cluster, address);
    controller.expect(SHOP, "default", &json!({"matched": 2, "injected": 2, "heard": 2}));
    controller.stop();
    audit::asked_only_for(cluster, ACCOUNT, &controller::roles());
}

/// A Collector with the configuration that `heard` prints. Only its receiver and its ports are the test's.
fn collector(cluster: &Cluster, otlp: SocketAddr, shown: SocketAddr) -> Program {
    let (printed, err, code) = output(program().args(["heard", "--print-collector-config"]));
    assert_eq!(code, Some(0), "{err}");
    let own = json!({
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": otlp}}}},
        "exporters": {"prometheus/heard": {"endpoint": shown}},
        "service": {
            "pipelines": {"traces": {"receivers": ["otlp"]}, "metrics": {"receivers": ["otlp"]}},
            "telemetry": {"metrics": {"level": "none"}},
        },
    });
    let dir = cluster.plane.dir();
    let write =
        |name: &str, text: &str| fs::write(dir.join(name), text).expect("the scratch folder is writable");
    write("printed.yaml", &printed);
    write("own.yaml", &own.to_string());
    let options = format!("--config={0}/printed.yaml\n--config={0}/own.yaml", dir.display());
    let program = cluster.plane.spawn("collector", &options);
    until("the Collector is ready", || admin::body(shown, "/metrics"));
    program
}

/// Pods are heard by the Collector with the printed configuration after a metric or a span of them, one that exports
/// nothing is silent after the patience, and nothing is known while the Collector is unavailable, of which one Event tells.
pub fn by_collector(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    let pods = ready_pods(cluster, 3);
    let [otlp, shown] = free_ports().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let mut source = collector(cluster, otlp, shown);
    export(otlp, "/v1/metrics", pods[0].name());
    export_span(otlp, pods[1].name());

    let flags = ["--heard-source=collector", "--heard-interval=1s", "--heard-patience=8s"];
    let flags = flags.map(str::to_owned).into_iter().chain([format!("--heard-url=http://{shown}/metrics")]);
    let controller = Controller::new(cluster).and(flags);
    controller.start();
    let counts = json!({"matched": 3, "injected": 3, "heard": 2, "silent": 1});
    let found = controller.expect(SHOP, "default", &counts);
    assert_eq!(condition(&found), ("False".to_owned(), "PodsSilent".to_owned()));

    source.stop();
    let found = controller.expect(SHOP, "default", &json!({"matched": 3, "injected": 3}));
    assert_eq!(condition(&found), ("Unknown".to_owned(), "NotKnown".to_owned()));
    assert_eq!(controller.metric("otel_webhook_heard_source_up{source=\"collector\"}"), Some(0));
    let events = until("an Event tells of the source", || {
        Some(source_events(cluster)).filter(|events| !events.is_empty())
    });
    assert!(events.len() == 1 && events[0]["series"].is_null(), "{events:?}");
    controller.stop();
}
