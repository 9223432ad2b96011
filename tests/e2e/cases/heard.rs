//! Whether data of injected pods arrives: a real Prometheus and a real Collector, to which the test sends what agents send,
//! by OTLP.

use std::{
    fs,
    io::Write,
    net::{SocketAddr, TcpListener},
    thread,
};

use jiff::Timestamp;
use otel_webhook_testkit::{
    admin,
    cluster::{ports::free_ports, program::Program},
    objects::items,
    until::until,
};
use serde_json::{Value, json};

use super::status;
use crate::{
    audit,
    cluster::{Cluster, LIMIT},
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
    until("Prometheus is ready", LIMIT, || admin::body(address, "/-/ready"));
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

/// A source that never answers, and one that answers what is none, delay no status, and no pod is silent because of them.
pub fn by_sources_that_fail(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    // One only accepts connections, the other one answers with a page for browsers.
    let [mute, wrong] = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let addresses = [&mute, &wrong].map(|listener| listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for stream in wrong.incoming() {
            let page = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<!DOCTYPE html>\n";
            let _ = stream.and_then(|mut stream| stream.write_all(page));
        }
    });
    for (pods, address, source) in [(1, addresses[0], "prometheus"), (2, addresses[1], "collector")] {
        cluster.apply(&deployment(SHOP, "order", pods));
        cluster.pods_of(SHOP, "app=order", pods).iter().for_each(|pod| ready(cluster, pod.name()));
        let flags = [format!("--heard-source={source}"), format!("--heard-url=http://{address}/graph")];
        let flags =
            flags.into_iter().chain(["--heard-interval=1s", "--heard-patience=1s"].map(str::to_owned));
        let controller = Controller::new(cluster).and(flags);
        controller.start();
        let found = controller.expect(SHOP, "default", &json!({"matched": pods, "injected": pods}));
        assert_eq!(condition(&found), ("Unknown".to_owned(), "NotKnown".to_owned()), "{source}");
        controller.stop();
    }
    drop(mute);
}

/// A pod is heard after its first export, one that exports nothing is silent after the patience, and nothing is known
/// while Prometheus is unavailable.
pub fn by_prometheus(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    cluster.apply(&deployment(SHOP, "order", 2));
    let pods = cluster.pods_of(SHOP, "app=order", 2);
    for pod in &pods {
        ready(cluster, pod.name());
    }
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
    until("an Event tells of it", LIMIT, || {
        has_event(cluster, SHOP, "Deployment", "order", "Silent").then_some(())
    });

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
    until("an Event tells of the source", LIMIT, || {
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
    until("the Collector is ready", LIMIT, || admin::body(shown, "/metrics"));
    program
}

/// Pods are heard by the Collector with the printed configuration after a metric or a span of them, one that exports
/// nothing is silent after the patience, and nothing is known while the Collector is unavailable, of which one Event tells.
pub fn by_collector(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    cluster.apply(&deployment(SHOP, "order", 3));
    let pods = cluster.pods_of(SHOP, "app=order", 3);
    for pod in &pods {
        ready(cluster, pod.name());
    }
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
    let told = || {
        let events = cluster.get("otel-webhook", &["events.events.k8s.io"]);
        items(&events["items"])
            .filter(|event| event["reason"] == "SourceUnavailable")
            .cloned()
            .collect::<Vec<_>>()
    };
    let events =
        until("an Event tells of the source", LIMIT, || Some(told()).filter(|told| !told.is_empty()));
    assert!(events.len() == 1 && events[0]["series"].is_null(), "{events:?}");
    controller.stop();
}
