//! Agents that are configured by a file, `spec.declarativeConfig`, and what becomes of those that cannot be.

use std::collections::{BTreeMap, BTreeSet};

use otel_webhook_testkit::objects::items;
use serde_json::{Value, json};

use super::attributes::{assert_resources, expected};
use crate::cluster::Cluster;
use crate::program::{printed, run};
use crate::received::Item;
use crate::service::{JAVA, NODEJS, PYTHON};
use crate::stage::{HTTP, SOON, Service, Stage, pod};

/// The last version of Java's agent that reads files of format 1.0 alone, as `tests/telemetry/prepare` has it.
const FORMAT_1_0: &str = "2.28.1";

/// The header of the kubelet's probes.
const PROBE: &str = "User-Agent: kube-probe/1.35";

/// The ID of the trace of a last request. Samplers by ratio look at the last half, and sample it.
const LAST: &str = "ffffffffffffffff0000000000000000";

/// How many requests of each kind a case makes.
const REQUESTS: usize = 20;

/// The limit of an attribute's value, by a variable. A path is longer.
const LONGEST_VALUE: usize = 5;

/// The most attributes of a span, by the limit in a file. A request has more. The SDK for Java applies the limit before it
/// asks the sampler: with 4, a rule does not see `url.path`.
const MOST_ATTRIBUTES: usize = 8;

/// Views, limits, a sampler by rules and two exporters work as the file says, with the current agent for Java and with an
/// older one; resources are those of the variables.
pub fn java(cluster: &Cluster) {
    let stage = Stage::new(cluster, "files-java");
    let rules = json!([
        {"attribute_patterns": {"key": "url.path", "included": ["/unsampled"]}, "sampler": {"always_off": {}}},
        {"sampler": {"always_on": {}}},
    ]);
    let sampler =
        json!({"parent_based": {"root": {"composite/development": {"rule_based": {"rules": rules}}}}});
    let view = json!({
        "selector": {"instrument_name": "http.server.request.duration"},
        "stream": {"name": "duration.of.requests", "attribute_keys": {"included": ["http.request.method"]}},
    });
    let of = |format: &str| {
        let mut file = file(format);
        let provider = &mut file["tracer_provider"];
        provider["limits"] = json!({"attribute_count_limit": MOST_ATTRIBUTES});
        provider["sampler"] = sampler.clone();
        let second = json!({"otlp_grpc": {"endpoint": "http://127.0.0.1:4317"}});
        provider["processors"].as_array_mut().expect("a list").push(batch(&second));
        file["meter_provider"]["views"] = json!([view]);
        file
    };
    let older = java_image();
    for (name, port, spec) in [
        ("current", 8181, json!({"declarativeConfig": of("1.0")})),
        ("newest", 8182, json!({"declarativeConfig": of("1.1")})),
        ("older", 8183, json!({"declarativeConfig": of("1.0"), "java": {"image": older}})),
    ] {
        stage.usual_instrumentation(name, &spec);
        let language = JAVA.at(port);
        let service = Service::new(language, stage.deploy(name, pod(language, name, &[])));
        stage.ask(&service, "orders");
        stage.ask_often(&service, "unsampled", REQUESTS);
        stage.ask_often(&service, "orders", REQUESTS);
        // Its caller has sampled it. Spans are sent in their order.
        stage.ask_with(&service, "orders", &[&format!("traceparent: 00-{LAST}-00f067aa0ba902b7-01")]);
        let [grpc, http] = ["grpc", "http"].map(|protocol| {
            stage.collector.wait("the last span", |received| {
                let own = received.served(name).into_iter().filter(|span| span.protocol == protocol);
                let own: Vec<_> = own
                    .map(|span| [span.field("traceId"), span.field("spanId")].map(str::to_owned))
                    .collect();
                own.iter().any(|[trace, _]| trace == LAST).then(|| BTreeSet::from_iter(own))
            })
        });
        assert_eq!(grpc, http, "{name}: both exporters send each span");
        assert_eq!(grpc.len(), REQUESTS + 2, "{name}: all requests for orders and no other ones");
        let keys = stage.collector.wait("the metric of the view", |received| {
            let mut own = received.metrics.iter().filter(|metric| metric.service() == name);
            let metric = own.find(|metric| metric.field("name") == "duration.of.requests")?;
            let points = items(&metric.value["histogram"]["dataPoints"]);
            let keys = points.flat_map(|point| items(&point["attributes"]));
            Some(keys.filter_map(|key| key["key"].as_str().map(str::to_owned)).collect::<BTreeSet<_>>())
        });
        assert_eq!(keys, BTreeSet::from(["http.request.method".to_owned()]), "{name}");
        for span in stage.collector.received().served(name) {
            assert!(span.attributes().len() <= MOST_ATTRIBUTES, "{name}: {}", span.value);
            assert!(span.value["droppedAttributesCount"].as_u64() > Some(0), "{name}: {}", span.value);
        }
        assert_resources(&stage, &service, &expected(&stage, &service.running, name));
    }
}

/// No span of the kubelet's probes, and one of each other request: in Java by a rule of the file, in Python by variables.
pub fn probes(cluster: &Cluster) {
    let stage = Stage::new(cluster, "files-probes");
    stage.usual_instrumentation("by-file", &json!({"probes": "drop", "declarativeConfig": file("1.0")}));
    stage.instrumentation("by-variables", json!({"probes": "drop"}));
    for (language, name) in [(JAVA, "by-file"), (PYTHON, "by-variables")] {
        let mut pod = pod(language, name, &[]);
        pod["spec"]["containers"][0]["readinessProbe"] =
            json!({"httpGet": {"path": "/health.z", "port": language.port}});
        let service = Service::new(language, stage.create(pod));
        stage.ask_with(&service, "health.z", &[PROBE]);
        for _ in 0..REQUESTS {
            stage.ask_with(&service, "health.z", &[PROBE]);
            stage.ask(&service, "orders");
        }
        let served = stage.collector.wait("all other requests", |received| {
            let served: Vec<_> = received.served(language.name).into_iter().map(Item::path).collect();
            (served.len() >= REQUESTS).then_some(served)
        });
        assert_eq!(served, vec!["/orders"; REQUESTS], "{}", language.name);
    }
}

/// Agents that cannot use the file are skipped, and the pod says why; or they have variables, and it says what is lost.
pub fn unsupported(cluster: &Cluster) {
    let stage = Stage::new(cluster, "files-unsupported");
    let mut by_variables = file("1.0");
    by_variables["onUnsupported"] = json!("env");
    by_variables["meter_provider"]["views"] =
        json!([{"selector": {"instrument_name": "a"}, "stream": {"name": "b"}}]);
    stage.usual_instrumentation("skipped", &json!({"declarativeConfig": file("1.0")}));
    stage.usual_instrumentation("by-variables", &json!({"declarativeConfig": by_variables}));
    let newer = json!({"declarativeConfig": file("1.1"), "java": {"image": java_image()}});
    cluster.instrumentation(stage.namespace, "newer", &newer);
    for (language, name, reason) in [
        (NODEJS, "skipped", "it ignores the file without a message"),
        (PYTHON, "skipped", "its image lacks the packages that read the file"),
        (JAVA, "newer", "it reads file_format 1.0, and has no telemetry with 1.1"),
    ] {
        let said = |message: &str| message.contains("spec.declarativeConfig") && message.contains(reason);
        let stored = cluster.create_when(
            "the Instrumentation is known",
            stage.namespace,
            &pod(language, name, &[]),
            |stored| said(&stored.message()),
        );
        assert!(stored.init_containers().is_empty(), "{}", language.name);
        let service = Service::new(language, stage.run(stored));
        assert!(stage.ask(&service, "orders").starts_with(language.name));
    }
    for language in [NODEJS, PYTHON] {
        let language = language.at(language.port + 100);
        let name = format!("{}-by-variables", language.name);
        let service = Service::new(language, stage.deploy(&name, pod(language, "by-variables", &[])));
        let deployment = format!("deployment/{name}");
        let explained =
            run(&cluster.plane, "explain", &[&deployment, "-n", stage.namespace, "--own-flags"]).found;
        let explained = json!(explained).to_string();
        let lost = "has variables instead; lost: meter_provider.views";
        assert!(explained.contains(lost), "{name}: {explained}");
        stage.ask(&service, "orders");
        stage.collector.wait("a span", |received| (!received.served(&name).is_empty()).then_some(()));
    }
}

/// `config migrate` writes a file with which an agent sends the same spans, with the same attributes and sampling.
pub fn migrated(cluster: &Cluster) {
    let stage = Stage::new(cluster, "files-migrated");
    let mut env: Vec<_> = SOON.map(|(name, value)| json!({"name": name, "value": value})).into();
    env.push(json!({"name": "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "value": LONGEST_VALUE.to_string()}));
    let spec = json!({
        "exporter": {"endpoint": HTTP}, "propagators": ["tracecontext"],
        "sampler": {"type": "traceidratio", "argument": "0.5"}, "env": env,
    });
    stage.usual_instrumentation("by-variables", &spec);
    let manifest = json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": "by-file", "namespace": stage.namespace}, "spec": spec,
    });
    let input = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(input.path(), manifest.to_string()).expect("its own file");
    let written = printed(&["config", "migrate", "-f", &input.path().to_string_lossy()]);
    let written: Value = serde_saphyr::from_str(&written).expect("YAML");
    assert!(written["spec"]["exporter"].is_null() && written["spec"]["declarativeConfig"].is_object());
    stage.usual_instrumentation("by-file", &written["spec"]);
    let ids: Vec<_> = (0..4 * REQUESTS as u64)
        .map(|number| format!("{number:016x}{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    let spans = [("by-variables", 8281), ("by-file", 8282)].map(|(name, port)| {
        let language = JAVA.at(port);
        let running = stage.create(with_name(pod(language, name, &[]), name));
        let service = Service::new(language, running);
        stage.ask(&service, "started");
        let ask = |id: &str| {
            stage.ask_with(&service, "orders", &[&format!("traceparent: 00-{id}-00f067aa0ba902b7-00")])
        };
        for id in &ids {
            ask(id);
        }
        // Spans are sent in their order.
        ask(LAST);
        stage.collector.wait("the last span", |received| {
            received.served(name).into_iter().any(|span| span.field("traceId") == LAST).then_some(())
        });
        let received = stage.collector.received();
        let served = received.served(name).into_iter();
        let served = served.filter(|span| ids.iter().any(|id| id == span.field("traceId")));
        served.map(|span| (span.field("traceId").to_owned(), comparable(span))).collect::<BTreeMap<_, _>>()
    });
    let [by_variables, by_file] = spans;
    assert!(!by_variables.is_empty() && by_variables.len() < ids.len(), "{}", by_variables.len());
    let has_limit = |(_, attributes): &(_, BTreeMap<String, String>)| attributes["url.path"] == "/orde";
    assert!(by_variables.values().all(has_limit), "{by_variables:?}");
    assert_eq!(by_variables, by_file);
}

/// A file that sends all signals soon.
fn file(format: &str) -> Value {
    let to = |path: &str| json!({"otlp_http": {"endpoint": format!("{HTTP}/v1/{path}")}});
    json!({
        "file_format": format,
        "propagator": {"composite_list": "tracecontext,baggage"},
        "tracer_provider": {"processors": [batch(&to("traces"))]},
        "meter_provider": {"readers": [{"periodic": {"interval": 1000, "exporter": to("metrics")}}]},
        "logger_provider": {"processors": [batch(&to("logs"))]},
    })
}

fn batch(exporter: &Value) -> Value {
    json!({"batch": {"schedule_delay": 100, "exporter": exporter}})
}

/// The image of Java's agent with an older tag.
fn java_image() -> String {
    let (repository, _) = otel_webhook_api::images::JAVA.rsplit_once(':').expect("a tag");
    format!("{repository}:{FORMAT_1_0}")
}

fn with_name(mut pod: Value, name: &str) -> Value {
    pod["metadata"]["name"] = name.into();
    pod
}

/// What two runs of a request have in common: the name, and the attributes but for those of the connection and the thread.
fn comparable(span: &Item) -> (String, BTreeMap<String, String>) {
    let mut attributes = span.attributes();
    attributes
        .retain(|key, _| !["network.", "server.port", "thread."].iter().any(|start| key.starts_with(start)));
    (span.field("name").to_owned(), attributes)
}
