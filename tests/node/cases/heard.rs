//! Whether data of real agents arrives, as the controller reports it.

use std::time::Instant;

use otel_webhook_testkit::runner::note;
use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use crate::backend;
use crate::cluster::{Cluster, HOME};
use crate::service::{LANGUAGES, Language};
use crate::workload::{DELIVERIES, Running, service};

const NAMESPACE: &str = "heard";

/// Pods of all languages are heard that send metrics to Prometheus itself, and to a Collector that it scrapes; those
/// whose endpoint names no Service are silent, and `trace` says so.
pub fn by_prometheus(cluster: &Cluster) {
    cluster.namespace(NAMESPACE, &json!({}));
    let collector = json!({
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": "0.0.0.0:4318"}}}},
        "exporters": {"prometheus": {"endpoint": "0.0.0.0:8889"}},
        "service": {"pipelines": {"metrics": {"receivers": ["otlp"], "exporters": ["prometheus"]}}},
    });
    backend::collector(cluster, NAMESPACE, &collector, &[4318, 8889]);
    backend::prometheus(cluster, NAMESPACE);
    let settings =
        ["source=prometheus", "url=http://prometheus.heard.svc:9090", "interval=2s", "patience=20s"];
    let settings = settings.map(|setting| format!("--set controller.heard.{setting}")).join(" ");
    cluster.shell(&format!(
        "helm upgrade otel-webhook charts/otel-webhook --namespace {HOME} --reuse-values {settings}"
    ));
    cluster.rolled_out(HOME, "otel-webhook-controller");
    for (name, endpoint, state) in [
        ("by-otlp", "http://prometheus.heard.svc:9090/api/v1/otlp/v1/metrics", "heard"),
        ("by-collector", "http://collector.heard.svc:4318/v1/metrics", "heard"),
        ("nowhere", "http://colector.heard.svc:4318/v1/metrics", "silent"),
    ] {
        cluster.instrumentation(NAMESPACE, name, &json!({"env": exported(endpoint)}));
        let pods =
            LANGUAGES.map(|language| (language, Running::create(cluster, NAMESPACE, &pod(name, language))));
        let ready = Instant::now();
        until(&format!("all pods of {name} are {state}"), || {
            let found = cluster.get(NAMESPACE, &["otelinst", name]);
            (found["status"]["pods"][state] == pods.len()).then_some(())
        });
        note(&format!("pods of {name} are {state} {:.0?} after they were ready", ready.elapsed()));
        for (language, pod) in pods {
            let trace =
                cluster.try_shell(&format!("otel-webhook trace pod/{} -n {NAMESPACE} -o json", pod.name));
            let found = trace.stdout.contains("ServiceNotFound");
            assert_eq!(
                found,
                state == "silent",
                "{} by {name}: {}{}",
                language.name,
                trace.stdout,
                trace.stderr
            );
            pod.delete();
        }
    }
    cluster.shell(&format!("kubectl delete namespace {NAMESPACE} --wait=false"));
}

/// Variables with which agents export metrics each second, and nothing else.
fn exported(endpoint: &str) -> Value {
    let variables = [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", endpoint),
        ("OTEL_METRICS_EXPORTER", "otlp"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_LOGS_EXPORTER", "none"),
    ];
    variables.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

/// A service that is asked, since Python's has metrics only of requests.
fn pod(instrumentation: &str, language: Language) -> Value {
    let name = format!("{instrumentation}-{}", language.name);
    let mut pod = service(&name, language, DELIVERIES[0]);
    pod["metadata"]["annotations"][language.annotation()] = instrumentation.into();
    pod
}
