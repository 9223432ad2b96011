//! The chart with many values: the API server's own word on every object.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::helm::Release;

const VALUES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chart/values");

/// Kinds whose resources are not installed here.
const OTHERS: [&str; 2] = ["ServiceMonitor", "PrometheusRule"];

pub fn taken(cluster: &Cluster) {
    let _cert_manager = crate::cert_manager::CertManager::start(cluster);
    let release = Release::new(cluster, "helm3", "rendered-release");
    cluster.namespace(&release.namespace);
    // Instrumentations are taken for what they are only where they are known.
    let crd = otel_webhook::cli::crd_yaml();
    let ran = cluster.plane.kubectl_in(&["create", "--filename", "-"], &crd);
    assert!(ran.ok, "{}", ran.stderr);
    let files = files();
    assert!(files.len() > 3, "where are the values? {files:?}");
    for file in files {
        let path = file.to_str().expect("a path in UTF-8");
        let ran = release.try_to(&["template", "--values", path], None);
        assert!(ran.ok, "{path}: {}", ran.stderr);
        let documents: Vec<Value> = serde_saphyr::from_multiple(&ran.stdout).expect("YAML");
        let known = documents.iter().filter(|object| !OTHERS.iter().any(|kind| object["kind"] == *kind));
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List",
            "items": known.filter(|object| !object.is_null()).collect::<Vec<_>>()});
        let args = ["apply", "--dry-run=server", "--server-side", "--force-conflicts", "--namespace"];
        let args = [&args[..], &[&release.namespace, "--filename", "-"]].concat();
        let ran = cluster.plane.kubectl_in(&args, &list.to_string());
        assert!(ran.ok && !ran.stderr.contains("Warning"), "{path}: {}", ran.stderr);
    }
}

fn files() -> Vec<PathBuf> {
    let entries = fs::read_dir(VALUES).expect("a folder of values");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}
