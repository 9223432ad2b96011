//! How telemetry gets to the Collector.

use serde_json::{Value, json};

use crate::certificates::Authority;
use crate::cluster::Cluster;
use crate::collector::Security;
use crate::service::{JAVA, LANGUAGES, Language, NODEJS};
use crate::stage::{Service, Stage, pod};

/// The name by which agents reach the Collector.
const HOST: &str = "localhost";

/// An Instrumentation that says nothing of the exporter: each agent has the port and the protocol of its version.
pub fn defaults(cluster: &Cluster) {
    let stage = Stage::new(cluster, "exporter-defaults");
    stage.instrumentation("default", json!({"exporter": {}}));
    arrives_by(&stage, &LANGUAGES, "http");
}

/// By gRPC at its port, for the agents that can.
pub fn grpc(cluster: &Cluster) {
    let stage = Stage::new(cluster, "exporter-grpc");
    let env = json!([{"name": "OTEL_EXPORTER_OTLP_PROTOCOL", "value": "grpc"}]);
    stage.instrumentation("default", json!({"exporter": {"endpoint": "http://127.0.0.1:4317"}, "env": env}));
    arrives_by(&stage, &[JAVA, NODEJS], "grpc");
}

/// With a CA of a `ConfigMap`.
pub fn tls(cluster: &Cluster) {
    let authority = Authority::new("collectors");
    let stage = Stage::with(cluster, "exporter-tls", &secured(&authority, HOST));
    stage.object("ConfigMap", "collector-ca", &[("ca.crt", &authority.pem())]);
    stage.instrumentation("default", by_config_map());
    arrives_by(&stage, &LANGUAGES, "http");
}

/// With a client certificate of a Secret, over both protocols.
pub fn mutual_tls(cluster: &Cluster) {
    let authority = Authority::new("collectors");
    let security = Security { client_ca: Some(authority.pem()), ..secured(&authority, HOST) };
    let stage = Stage::with(cluster, "exporter-mutual-tls", &security);
    let pair = authority.client();
    let files = [("ca.crt", &*authority.pem()), ("tls.crt", &pair.certificate), ("tls.key", &pair.key)];
    stage.object("Secret", "collector-client", &files);
    stage.instrumentation("default", by_secret("https://localhost:4318"));
    arrives_by(&stage, &LANGUAGES, "http");
    let mut grpc = by_secret("https://localhost:4317");
    grpc["env"] = json!([{"name": "OTEL_EXPORTER_OTLP_PROTOCOL", "value": "grpc"}]);
    stage.instrumentation("by-grpc", grpc);
    // The first pod of a language has its usual port.
    let services = stage.create_each(&[JAVA.at(9081), NODEJS.at(9082)], |language| {
        let name = format!("{}-grpc", language.name);
        let mut pod = pod(language, "by-grpc", &[("OTEL_SERVICE_NAME", &name)]);
        pod["metadata"]["name"] = name.into();
        pod
    });
    for service in services {
        all_arrives(&stage, &service, &format!("{}-grpc", service.language.name), "grpc");
    }
}

/// A Collector that wants nothing of clients.
pub fn secured(authority: &Authority, name: &str) -> Security {
    let pair = authority.server(name);
    Security { certificate: Some((pair.certificate, pair.key)), client_ca: None }
}

/// An Instrumentation with the CA of a `ConfigMap`.
pub fn by_config_map() -> Value {
    let tls = json!({"configMapName": "collector-ca", "ca_file": "ca.crt"});
    json!({"exporter": {"endpoint": "https://localhost:4318", "tls": tls}})
}

/// An Instrumentation with everything of a Secret.
pub fn by_secret(endpoint: &str) -> Value {
    let tls = json!({
        "secretName": "collector-client", "ca_file": "ca.crt", "cert_file": "tls.crt", "key_file": "tls.key",
    });
    json!({"exporter": {"endpoint": endpoint, "tls": tls}})
}

fn arrives_by(stage: &Stage<'_>, languages: &[Language], protocol: &str) {
    for service in stage.create_each(languages, |language| pod(language, "default", &[])) {
        all_arrives(stage, &service, service.language.name, protocol);
    }
}

/// Spans, metrics and logs of the service arrive by this protocol, and nothing by another.
fn all_arrives(stage: &Stage<'_>, service: &Service, name: &str, protocol: &str) {
    stage.ask(service, "orders");
    stage
        .collector
        .wait(&format!("all telemetry of {name}"), |received| received.has_all(name).then_some(()));
    for (signal, items) in stage.collector.received().signals() {
        let mut of_service = items.iter().filter(|item| item.service() == name);
        assert!(of_service.all(|item| item.protocol == protocol), "{signal} of {name}");
    }
}
