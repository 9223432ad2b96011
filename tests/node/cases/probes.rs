//! Spans of the kubelet's own probes, with `spec.probes: drop`, at a real Collector.

use std::fs;
use std::path::PathBuf;

use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use crate::backend;
use crate::cluster::Cluster;
use crate::received::{Item, Received};
use crate::service::{JAVA, Language, NODEJS, PYTHON};
use crate::workload::{APP, Running, asking};

const NAMESPACE: &str = "probes";

/// The kubelet probes each second by both of these paths.
const PROBED: [(&str, &str); 2] = [("readinessProbe", "/ready"), ("livenessProbe", "/live")];

/// One each second: a minute.
const REQUESTS: usize = 60;

/// What arrives, and what the rule for a Collector lets pass.
const FILES: [&str; 2] = ["all", "filtered"];

/// Through a minute of probes: no span of them and one of each other request, in Java by the file, in Python by variables,
/// and in Node.js by the rule that the note prints for a Collector.
pub fn dropped(cluster: &Cluster) {
    cluster.namespace(NAMESPACE, &json!({}));
    let collector = Collector::start(cluster);
    let endpoint = "http://collector.probes.svc:4318";
    let batch = json!({"schedule_delay": 100, "exporter": {"otlp_http": {"endpoint": format!("{endpoint}/v1/traces")}}});
    // Also by the SDK of a pod that has its own, by which it is found out that the Instrumentation is known.
    let file = json!({"file_format": "1.0", "assumeSupported": true, "tracer_provider": {"processors": [{"batch": batch}]}});
    let variables = [
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_LOGS_EXPORTER", "none"),
    ];
    let variables = variables.map(|(name, value)| json!({"name": name, "value": value}));
    cluster.instrumentation(NAMESPACE, "by-file", &json!({"probes": "drop", "declarativeConfig": file}));
    let by_variables = json!({"probes": "drop", "exporter": {"endpoint": endpoint}, "env": variables});
    cluster.instrumentation(NAMESPACE, "by-variables", &by_variables);
    let services = [(JAVA, "by-file"), (PYTHON, "by-variables"), (NODEJS, "by-variables")];
    let services = services.map(|(language, instrumentation)| {
        (language, Running::created(cluster, NAMESPACE, &probed(language, instrumentation)))
    });
    for (language, service) in &services {
        service.log_of("asks", &format!("asked {REQUESTS} times"));
        for (_, path) in PROBED {
            let log = service.log_of("app", path);
            let probes = log.lines().filter(|line| line.contains("asked for") && line.contains(path)).count();
            assert!(probes > REQUESTS / 2, "{} was probed {probes} times by {path}", language.name);
        }
        let [all, passed] = FILES.map(|file| {
            until(&format!("all spans of {} in {file}", language.name), || {
                let received = collector.received(file);
                let served: Vec<_> = received.served(language.name).into_iter().map(Item::path).collect();
                (served.iter().filter(|path| *path == "/orders").count() >= REQUESTS).then_some(served)
            })
        });
        assert_eq!(passed, vec!["/orders"; REQUESTS], "{}", language.name);
        let dropped_by = if language.name == NODEJS.name { "the Collector" } else { "the agent" };
        assert_eq!(all.len() > REQUESTS, dropped_by == "the Collector", "{}: {all:?}", language.name);
    }
    cluster.shell(&format!("kubectl delete namespace {NAMESPACE} --wait=false"));
}

/// A pod in the network of the node, where its service listens on loopback. Another container asks it, too.
fn probed(language: Language, instrumentation: &str) -> Value {
    let mut container = language.container(&[]);
    for (probe, path) in PROBED {
        let get = json!({"host": "127.0.0.1", "port": language.port, "path": path});
        container[probe] =
            json!({"httpGet": get, "periodSeconds": 1, "timeoutSeconds": 10, "failureThreshold": 60});
    }
    let ask = format!(
        "n=0; while [ $n -lt {REQUESTS} ]; do busybox wget -q -O /dev/null {} && n=$((n + 1)); sleep 1; done; \
         echo asked $n times; trap exit TERM; while :; do sleep 1; done",
        language.url("orders")
    );
    let mut pod =
        asking(language.name, &[(&format!("inject-{}", language.name), instrumentation)], container);
    let containers = pod["spec"]["containers"].as_array_mut().expect("containers");
    containers.push(json!({"name": "asks", "image": APP, "command": ["busybox", "sh", "-c", ask]}));
    pod["spec"]["hostNetwork"] = true.into();
    pod["spec"]["dnsPolicy"] = "ClusterFirstWithHostNet".into();
    pod
}

/// A Collector that writes spans to files.
struct Collector {
    folder: PathBuf,
}

impl Collector {
    /// Starts it with the rule that a note prints.
    fn start(cluster: &Cluster) -> Self {
        let mut configuration = rule(cluster);
        let rules: Vec<_> =
            configuration["processors"].as_object().expect("processors").keys().cloned().collect();
        configuration["receivers"]["otlp"]["protocols"]["http"]["endpoint"] = "0.0.0.0:4318".into();
        for (file, processors) in FILES.into_iter().zip([vec![], rules]) {
            let exporter = format!("file/{file}");
            configuration["service"]["pipelines"][format!("traces/{file}")] =
                json!({"receivers": ["otlp"], "processors": processors, "exporters": [exporter]});
            configuration["exporters"][exporter] =
                json!({"path": format!("/data/{file}.json"), "flush_interval": "100ms"});
        }
        let uid = backend::collector(cluster, NAMESPACE, &configuration, &[4318]);
        Self { folder: cluster.node().empty_dir(&uid, backend::DATA) }
    }

    /// What a file has.
    fn received(&self, file: &str) -> Received {
        let text = fs::read_to_string(self.folder.join(format!("{file}.json"))).unwrap_or_default();
        let mut received = Received::default();
        // The last line may be half written.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            received.add("http", &serde_json::from_str(line).expect("JSON"));
        }
        received
    }
}

/// The part of a Collector's configuration that `explain` prints for an agent that cannot drop spans of probes.
fn rule(cluster: &Cluster) -> Value {
    let instrumentation = json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": "default"}, "spec": {"probes": "drop"},
    });
    let pod = probed(NODEJS, "default");
    let command = "otel-webhook explain --output json --filename - <<'END'";
    let printed = cluster.shell(&format!("{command}\n{instrumentation}\n---\n{pod}\nEND"));
    let explained: Value = serde_json::from_str(&printed).expect("JSON");
    let notes = explained["findings"][0]["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut rules = notes.filter_map(|note| note.split_once("a Collector can: "));
    let (_, rule) = rules.next().unwrap_or_else(|| panic!("no rule for a Collector: {explained}"));
    serde_saphyr::from_str(rule).expect("YAML")
}
