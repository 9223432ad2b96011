//! Certificates with which nothing arrives, and what the agents and the product say of them.

use serde_json::json;

use super::exporters::{by_config_map, by_secret, secured};
use crate::certificates::{Authority, Pair};
use crate::cluster::Cluster;
use crate::collector::Security;
use crate::program::check;
use crate::service::{LANGUAGES, NODEJS};
use crate::stage::{Service, Stage, pod};

/// Its table says how the failures are told apart.
const DOCUMENTED: &str = include_str!("../../../docs/operations/troubleshooting.md");

/// The certificate of the Collector has expired.
pub fn expired(cluster: &Cluster) {
    let authority = Authority::new("collectors");
    let pair = authority.expired("localhost");
    fails_as_documented(cluster, "certificate-expired", &authority, pair, "has expired");
}

/// It is of another CA than the one of the `ConfigMap`.
pub fn other_authority(cluster: &Cluster) {
    let (authority, other) = (Authority::new("collectors"), Authority::new("others"));
    let pair = other.server("localhost");
    fails_as_documented(cluster, "certificate-of-other-ca", &authority, pair, "of another CA");
}

/// It is for another name than that of the endpoint.
pub fn other_name(cluster: &Cluster) {
    let authority = Authority::new("collectors");
    let pair = authority.server("collector.observability.svc");
    fails_as_documented(cluster, "certificate-for-other-name", &authority, pair, "another name");
}

/// The Secret with the client certificate does not exist: the service runs without telemetry, and `check` says why.
pub fn missing_secret(cluster: &Cluster) {
    let authority = Authority::new("collectors");
    let security = Security { client_ca: Some(authority.pem()), ..secured(&authority, "localhost") };
    let stage = Stage::with(cluster, "secret-missing", &security);
    stage.instrumentation("default", by_secret("https://localhost:4318"));
    let service = Service::new(NODEJS, stage.deploy("front", pod(NODEJS, "default", &[])));
    let found = check(&cluster.plane, &["--namespace", stage.namespace]).found;
    let missing: Vec<_> = found.iter().filter(|one| one["code"] == "ExporterFilesMissing").collect();
    assert_eq!(missing.len(), 1, "{found:?}");
    let object = json!({"kind": "Secret", "namespace": "secret-missing", "name": "collector-client"});
    assert_eq!(missing[0]["object"], object);
    stage.ask(&service, "orders");
    stage.ask_often(&service, "orders", 20);
    assert!(stage.collector.received().signals().iter().all(|(_, items)| items.is_empty()));
}

/// Each language logs what its column of the row says, and nothing of the other rows; the service runs.
fn fails_as_documented(
    cluster: &Cluster,
    namespace: &'static str,
    trusted: &Authority,
    pair: Pair,
    row: &str,
) {
    let certificate = Some((pair.certificate, pair.key));
    let stage = Stage::with(cluster, namespace, &Security { certificate, client_ca: None });
    stage.object("ConfigMap", "collector-ca", &[("ca.crt", &trusted.pem())]);
    let mut spec = by_config_map();
    // Without it, this agent says nothing.
    spec["nodejs"] = json!({"env": [{"name": "OTEL_LOG_LEVEL", "value": "error"}]});
    stage.instrumentation("default", spec);
    for service in stage.create_each(&LANGUAGES, |language| pod(language, "default", &[])) {
        stage.ask(&service, "orders");
        let words = documented(service.language.name);
        let (_, expected) = words.iter().find(|(failure, _)| failure.contains(row)).expect("a row");
        let log = service.running.played.wait_for(&[expected]);
        let others = words.iter().filter(|(_, words)| words != expected);
        for (failure, words) in others {
            assert!(!log.contains(words), "{} looks like \"{failure}\":\n{log}", service.language.name);
        }
    }
    assert!(stage.collector.received().signals().iter().all(|(_, items)| items.is_empty()));
}

/// What a language logs, by failure, as the table in the documentation says.
fn documented(language: &str) -> Vec<(&'static str, &'static str)> {
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    let mut lines = DOCUMENTED.lines().skip_while(|line| !line.starts_with("| the Collector's certificate"));
    let head = cells(lines.next().expect("the table"));
    let column = head.iter().position(|title| *title == language).expect("a column");
    let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(cells);
    rows.map(|row| (row[0], row[column].trim_matches('`'))).collect()
}
