//! What a case has: a namespace, a Collector, and the pods that it starts.

use std::sync::Mutex;

use otel_webhook_testkit::cluster::{created::Created, manifests::deployment_of};
use otel_webhook_testkit::containers::played::Played;
use otel_webhook_testkit::containers::podman::both;
use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::collector::{Collector, Security};
use crate::service::Language;

/// So that a test does not wait longer than it has to.
pub const SOON: [(&str, &str); 3] = [
    ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ("OTEL_BLRP_SCHEDULE_DELAY", "100"),
    ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
];

/// Where the Collector of a stage takes telemetry by HTTP.
pub const HTTP: &str = "http://127.0.0.1:4318";

pub struct Stage<'c> {
    pub cluster: &'c Cluster,
    pub namespace: &'static str,
    pub collector: Collector,
    /// `ConfigMap`s and Secrets, which the kubelet reads.
    objects: Mutex<Vec<Value>>,
}

/// A pod that runs, and how it was stored.
pub struct Running {
    pub stored: Created,
    pub played: Played,
}

impl<'c> Stage<'c> {
    /// With a Collector without TLS.
    pub fn new(cluster: &'c Cluster, namespace: &'static str) -> Self {
        Self::with(cluster, namespace, &Security::default())
    }

    pub fn with(cluster: &'c Cluster, namespace: &'static str, security: &Security) -> Self {
        cluster.namespace(namespace, &[]);
        Self { cluster, namespace, collector: Collector::start(security), objects: Mutex::default() }
    }

    /// Makes an Instrumentation that the webhook knows, and that exports soon; by HTTP, unless `spec` says otherwise.
    pub fn instrumentation(&self, name: &str, mut spec: Value) {
        if spec["exporter"].is_null() {
            spec["exporter"] = json!({"endpoint": HTTP});
        }
        let mut env = spec["env"].as_array().cloned().unwrap_or_default();
        env.extend(SOON.map(|(name, value)| json!({"name": name, "value": value})));
        spec["env"] = env.into();
        self.usual_instrumentation(name, &spec);
    }

    /// The same as it is, with the delays that agents have by default.
    pub fn usual_instrumentation(&self, name: &str, spec: &Value) {
        self.cluster.instrumentation(self.namespace, name, spec);
        let probe = crate::cluster::asking("probe", &[("inject-java", name)]);
        until("the Instrumentation is known", || {
            self.cluster.dry_run(self.namespace, &probe).is_injected().then_some(())
        });
    }

    /// Makes a `ConfigMap` or a Secret. Its values are text.
    pub fn object(&self, kind: &str, name: &str, data: &[(&str, &str)]) {
        let data: serde_json::Map<_, _> =
            data.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect();
        let key = if kind == "Secret" { "stringData" } else { "data" };
        let object = json!({
            "apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": self.namespace}, key: data,
        });
        self.cluster.apply(&object);
        let mut stored = self.cluster.get(self.namespace, &[kind, name]);
        stored["kind"] = kind.into();
        self.objects.lock().expect("cases are one thread each").push(stored);
    }

    /// Makes a Deployment of such a pod, and runs what its controllers made and the API server stored.
    pub fn deploy(&self, name: &str, mut pod: Value) -> Running {
        pod["metadata"]["labels"]["app"] = name.into();
        pod["metadata"].as_object_mut().expect("metadata").remove("name");
        let template = json!({"metadata": pod["metadata"], "spec": pod["spec"]});
        self.cluster.apply(&deployment_of(self.namespace, 1, &template));
        let stored = self.cluster.pods_of(self.namespace, &format!("app={name}"), 1).remove(0);
        self.run(stored)
    }

    /// Creates a pod, and runs it as the API server stored it.
    pub fn create(&self, pod: Value) -> Running {
        self.run(self.cluster.create(self.namespace, &pod))
    }

    pub fn run(&self, stored: Created) -> Running {
        let mut pod = stored.pod.clone();
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        let mut documents = self.objects.lock().expect("cases are one thread each").clone();
        documents.push(pod);
        Running { played: Played::start(documents, self.collector.network()), stored }
    }

    /// Creates a pod of each language, by what `pod` makes of it.
    pub fn create_each(&self, languages: &[Language], pod: impl Fn(Language) -> Value) -> Vec<Service> {
        languages.iter().map(|language| Service::new(*language, self.create(pod(*language)))).collect()
    }

    /// What a service answers, once it does.
    pub fn ask(&self, service: &Service, path: &str) -> String {
        self.ask_with(service, path, &[])
    }

    /// The same with headers.
    pub fn ask_with(&self, service: &Service, path: &str, headers: &[&str]) -> String {
        /// To ask podman takes longer than to ask a service.
        const TRIES: usize = 40;
        let name = service.language.name;
        let mut tries = 0;
        until(&format!("{name} answers"), || {
            let answer = self.try_ask(service.language, path, headers);
            tries += 1;
            let runs = answer.is_some() || tries % TRIES > 0 || service.running.played.runs("app");
            assert!(runs, "{name} ended:\n{}", service.running.played.log("app"));
            answer
        })
    }

    /// Asks a service so many times, which has answered before.
    pub fn ask_often(&self, service: &Service, path: &str, times: usize) {
        let url = service.language.url(path);
        let script = format!(
            "i=0; while [ $i -lt {times} ]; do busybox wget -q -O /dev/null {url} || exit 1; i=$((i+1)); done"
        );
        let output = self.collector.network().command("sh").args(["-c", &script]).output().expect("a shell");
        assert!(output.status.success(), "{}", both(&output));
    }

    fn try_ask(&self, language: Language, path: &str, headers: &[&str]) -> Option<String> {
        let mut command = self.collector.network().command("busybox");
        command.args(["wget", "-q", "-O", "-", &language.url(path)]);
        for header in headers {
            command.args(["--header", header]);
        }
        let output = command.output().expect("busybox can be started");
        output.status.success().then(|| both(&output))
    }
}

/// The service of a language in the container `app` of a pod.
pub struct Service {
    pub language: Language,
    pub running: Running,
}

impl Service {
    pub fn new(language: Language, running: Running) -> Self {
        Self { language, running }
    }
}

/// A pod with the service of a language, of which the Instrumentation of this name is asked for.
pub fn pod(language: Language, instrumentation: &str, env: &[(&str, &str)]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": language.name, "annotations": {(language.annotation()): instrumentation}},
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [language.container(env)],
        },
    })
}
