//! What a release has in addition to the webhook, with the values that change it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use otel_webhook_testkit::{
    cluster::manifests::{bound_to_default, deployment_of, template_asking},
    objects::items,
    until::{poll, until},
};
use serde_json::{Value, json};

use super::values;
use crate::cert_manager::CertManager;
use crate::cluster::Cluster;
use crate::helm::Release;
use crate::pod::{Pod, Ports};

/// The Deployment of the controller, and its Lease.
const NAME: &str = "otel-webhook-controller";
const APPS: &str = "controller-apps";

const VALUES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chart/values");

/// Kinds whose resources are not installed here.
const OTHERS: [&str; 2] = ["ServiceMonitor", "PrometheusRule"];

/// The roles of the controller are enough for it to lead and to write what it found, and for nothing else.
pub fn controller(cluster: &Cluster) {
    let ports = Ports::free();
    let release = Release::new(cluster, "helm3", "controller-release");
    release.install(&values(ports, json!({"certificates": {"extraNames": ["localhost"]}})));
    let _webhook = Pod::start(cluster, &release.namespace, ports);
    cluster.namespace(APPS);
    cluster.instrumentation(APPS);
    cluster.until_injected(APPS);
    cluster.create_java(APPS, "app");

    let mut controller = Pod::of(cluster, &release.namespace, NAME, Ports::free());
    controller.until_ready();

    until("the status of the Instrumentation counts the pod", || {
        let found = cluster.find_in(APPS, "instrumentation", "default")?;
        let pods = &found["status"]["pods"];
        (pods["matched"] == 1 && pods["injected"] == 1).then_some(())
    });
    let lease = cluster.find_in(&release.namespace, "lease", NAME).expect("a Lease of the name in the role");
    assert!(lease["spec"]["holderIdentity"].is_string(), "{lease}");
    let account = format!("--as=system:serviceaccount:{}:{NAME}", release.namespace);
    let may = |args: &[&str]| cluster.plane.kubectl(&[&["auth", "can-i", &account], args].concat()).ok;
    assert!(may(&["list", "pods", "--all-namespaces"]));
    for refused in [
        &["get", "secrets", "--namespace", &*release.namespace][..],
        &["patch", "deployments.apps", "--namespace", APPS],
        &["patch", "instrumentations.opentelemetry.io", "--namespace", APPS],
        &["delete", "pods", "--namespace", APPS],
        &["patch", "leases.coordination.k8s.io/other", "--namespace", &*release.namespace],
    ] {
        assert!(!may(refused), "{refused:?}");
    }
}

/// A developer with the role `view` in one namespace knows what new pods get, and whether all injection is paused.
pub fn developer(cluster: &Cluster) {
    const NAMESPACE: &str = "developer-apps";
    let ports = Ports::free();
    let release = Release::new(cluster, "helm4", "developer-release");
    let languages = json!({"languages": ["java", "go"]});
    let certificates = json!({"extraNames": ["localhost"]});
    release.install(&values(ports, json!({"certificates": certificates, "injection": languages})));
    let _webhook = Pod::start(cluster, &release.namespace, ports);
    cluster.namespace(NAMESPACE);
    cluster.instrumentation(NAMESPACE);
    cluster.until_injected(NAMESPACE);
    cluster.plane.apply_server_side(&bound_to_default(NAMESPACE, "view").to_string());
    let template = template_asking("order", &[("inject-java", "true"), ("inject-nodejs", "true")]);
    cluster.plane.apply_server_side(&deployment_of(NAMESPACE, 1, &template).to_string());

    let kubeconfig = cluster.plane.kubeconfig_of(NAMESPACE, "default");
    let settings = format!("{}/otel-webhook-settings", release.namespace);
    let explained = || -> Option<Value> {
        let ran = Command::new(env!("CARGO_BIN_EXE_otel-webhook"))
            .args(["explain", "deployment/order", "-n", NAMESPACE, "-o", "json", "--settings", &settings])
            .env("KUBECONFIG", &kubeconfig)
            .output()
            .expect("the program can be started");
        serde_json::from_slice(&ran.stdout).ok()
    };
    let outcomes = |explained: &Value| -> Vec<String> {
        items(&explained["findings"])
            .map(|one| one["outcome"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let mut last = Value::Null;
    let certain = poll(|| {
        last = explained()?;
        (last["reviewed"] == true && last["caveats"] == json!([])).then(|| outcomes(&last))
    });
    assert_eq!(certain, Some(vec!["LanguageDisabled".to_owned(), "Injected".to_owned()]), "{last}");
    cluster.plane.run_kubectl(&["annotate", "namespace", &release.namespace, "otel-webhook/paused=true"]);
    until("injection is paused for the developer, too", || {
        outcomes(&explained()?).contains(&"Paused".to_owned()).then_some(())
    });
    cluster.plane.run_kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]);
}

/// An Instrumentation for everybody, made by the release.
pub fn default_instrumentation(cluster: &Cluster) {
    let ports = Ports::free();
    let release = Release::new(cluster, "helm3", "default-release");
    let default =
        json!({"enabled": true, "spec": {"exporter": {"endpoint": "http://collector.observability:4317"}}});
    let more = json!({"certificates": {"extraNames": ["localhost"]}, "defaultInstrumentation": default});
    release.install(&values(ports, more));
    let _pod = Pod::start(cluster, &release.namespace, ports);

    cluster.namespace("default-apps");
    cluster.until_injected("default-apps");

    let pod = cluster.create_java("default-apps", "app");
    assert_eq!(pod.variable("app", "OTEL_EXPORTER_OTLP_ENDPOINT"), "http://collector.observability:4317");
}

/// Made by `otel-webhook certs`, stored by the command that it prints.
pub fn own_certificates(cluster: &Cluster) {
    let ports = Ports::free();
    let release = Release::new(cluster, "helm3", "files-release");
    cluster.namespace(&release.namespace);
    let folder = cluster.plane.dir().join("certs");
    let made = Command::new(env!("CARGO_BIN_EXE_otel-webhook"))
        .args(["certs", "--namespace", &release.namespace, "--tls-name", "localhost", "--out"])
        .arg(&folder)
        .output()
        .expect("the program can be started");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let file = |name: &str| format!("{}", folder.join(name).display());
    let pair = ["--cert", &file("tls.crt"), "--key", &file("tls.key")];
    let secret = ["create", "secret", "tls", "own", "--namespace", &release.namespace];
    cluster.plane.run_kubectl(&[&secret[..], &pair].concat());
    let authority = fs::read_to_string(folder.join("ca.crt")).expect("a CA");
    let certificates = json!({"mode": "files", "files": {"secretName": "own", "caBundle": authority}});

    release.install(&values(ports, json!({"certificates": certificates})));

    let _pod = Pod::start(cluster, &release.namespace, ports);
    cluster.namespace("files-apps");
    cluster.instrumentation("files-apps");
    cluster.until_injected("files-apps");
}

/// The chart with many values: the API server accepts every object.
pub fn rendered(cluster: &Cluster) {
    let _cert_manager = CertManager::start(cluster);
    let release = Release::new(cluster, "helm3", "rendered-release");
    cluster.namespace(&release.namespace);
    // Instrumentations are taken for what they are only where they are known.
    let crd = otel_webhook::crd_yaml();
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
        let list = json!({"apiVersion": "v1", "kind": "List",
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
