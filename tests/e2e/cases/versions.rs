//! Two versions of Instrumentation, and webhooks that convert between them.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::Command,
    sync::Arc,
    time::Duration,
};

use axum::{Router, http::header::CONTENT_TYPE, routing::post};
use otel_webhook_server::{
    Listening, Shutdown, Transport,
    tls::{self, CurrentCertificate},
};
use otel_webhook_telemetry::Metrics;
use otel_webhook_testkit::{
    cluster::{control_plane::ControlPlane, created::Created, manifests::java, traffic::Traffic},
    objects::items,
    until::until,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::cluster::Cluster;
use crate::program::{PROGRAM, check, output, printed};
use crate::registration::register_instrumentations;
use crate::webhook::pair;

const NAMESPACE: &str = "versions";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";

/// A webhook that converts and loses the protocol, as the operator's does. It ends when this is dropped.
struct Lossy {
    _runtime: Runtime,
    _phases: Shutdown,
    url: String,
    authority: String,
}

impl Lossy {
    fn start() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let pair = pair();
        let metrics = Arc::new(Metrics::new());
        let serving = pair.serving().expect("a certificate");
        let current = Arc::new(CurrentCertificate::new(serving, Arc::clone(&metrics)));
        let config = tls::server_config(current).expect("a configuration");
        let phases = Shutdown::new();
        let address = runtime.block_on(async {
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listening = Listening::bind("lossy", any).expect("a port");
            let address = listening.address;
            let answer = async |review: String| {
                let review = serde_json::from_str(&review).expect("JSON");
                ([(CONTENT_TYPE, "application/json")], lossy(&review).to_string())
            };
            let router = Router::new().route("/convert", post(answer));
            let transport = Transport::Tls { config: Arc::new(config), metrics };
            tokio::spawn(listening.serve(router, transport, phases.phases(), Duration::ZERO));
            address
        });
        Self { _runtime: runtime, _phases: phases, url: format!("https://{address}"), authority: pair.ca_pem }
    }
}

fn lossy(review: &Value) -> Value {
    let request = &review["request"];
    let to = request["desiredAPIVersion"].as_str().expect("a version");
    let convert = |object: &Value| {
        let mut object = object.clone();
        object["apiVersion"] = to.into();
        let spec = object["spec"].as_object_mut().expect("a specification");
        if to.ends_with("v1beta1") {
            if let Some(exporter) = spec.remove("exporter") {
                spec.insert("envConfig".to_owned(), json!({"exporter": exporter}));
            }
        } else if let Some(mut config) = spec.remove("envConfig") {
            config["exporter"].as_object_mut().expect("an exporter").remove("protocol");
            spec.insert("exporter".to_owned(), config["exporter"].take());
        }
        object
    };
    let objects: Vec<_> = items(&request["objects"]).map(convert).collect();
    let response =
        json!({"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response})
}

/// Applies the CRD with a webhook that converts, and waits until these versions are served.
fn serve(plane: &ControlPlane, served: &str, storage: &str, url: &str, authority: &str) {
    let file = plane.dir().join("conversion-ca.crt");
    std::fs::write(&file, authority).expect("written");
    let flags = ["crd", "--served", served, "--storage", storage, "--conversion-url", url, "--ca-bundle"];
    plane.apply_server_side(&printed(&[&flags[..], &[file.to_str().expect("UTF-8")]].concat()));
    for version in ["v1alpha1", "v1beta1"] {
        until(&format!("{version} is served or not"), || {
            let found = plane.kubectl(&["get", "--raw", &format!("/apis/opentelemetry.io/{version}")]);
            let is_served = found.ok && found.stdout.contains("\"instrumentations\"");
            (is_served == served.contains(version)).then_some(())
        });
    }
}

fn next(name: &str, endpoint: &str, protocol: &str) -> Value {
    json!({
        "apiVersion": "opentelemetry.io/v1beta1", "kind": "Instrumentation",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"envConfig": {"exporter": {"endpoint": endpoint, "protocol": protocol}}},
    })
}

fn read(plane: &ControlPlane, version: &str, name: &str) -> Value {
    plane.get(NAMESPACE, &[&format!("instrumentations.{version}.opentelemetry.io"), name])
}

fn protocol(pod: &Created) -> Value {
    let containers = items(&pod.pod["spec"]["containers"]);
    let mut variables = containers.flat_map(|container| items(&container["env"]));
    variables
        .find(|variable| variable["name"] == PROTOCOL)
        .map(|found| found["value"].clone())
        .unwrap_or_default()
}

/// The operator's CRD of the future, while its webhook answers and after it was removed.
pub fn lossy_conversion(_: &Cluster) {
    let cluster = Cluster::without_controllers();
    let plane = &cluster.plane;
    cluster.namespace(NAMESPACE, &[]);
    let other = Lossy::start();
    serve(plane, "v1alpha1,v1beta1", "v1beta1", &other.url, &other.authority);
    let _registered = register_instrumentations(plane, &cluster.webhook, NAMESPACE);

    cluster.apply(&next("default", "http://collector:4318", "http/json"));
    let stored = read(plane, "v1beta1", "default");
    let exporter = &stored["spec"]["envConfig"]["exporter"];
    assert_eq!(exporter["protocol"], "http/json", "it was reviewed in its own version: {stored}");
    assert!(stored["spec"]["java"].is_null(), "nothing is defaulted in v1beta1: {stored}");
    let shown = read(plane, "v1alpha1", "default");
    assert_eq!(
        shown["spec"]["exporter"],
        json!({"endpoint": "http://collector:4318"}),
        "the other webhook converts"
    );
    let pod = cluster.create_when("the Instrumentation is known", NAMESPACE, &java("order"), |pod| {
        protocol(pod) == "http/json"
    });
    assert!(pod.is_injected());
    cluster.annotate(&[
        "instrumentations.v1beta1.opentelemetry.io",
        "--namespace",
        NAMESPACE,
        "default",
        "note=kept",
    ]);
    assert_eq!(read(plane, "v1beta1", "default")["spec"], stored["spec"]);

    // Objects that were stored before, in the other version.
    serve(plane, "v1alpha1,v1beta1", "v1alpha1", &other.url, &other.authority);
    until("v1alpha1 is stored", || {
        cluster.instrumentation(NAMESPACE, "old", &json!({"exporter": {"endpoint": "http://old:4318"}}));
        plane.kubectl(&["delete", "instrumentation", "old", "--namespace", NAMESPACE]).ok.then_some(())
    });
    cluster.instrumentation(NAMESPACE, "old", &json!({"exporter": {"endpoint": "http://old:4318"}}));
    serve(plane, "v1alpha1,v1beta1", "v1beta1", &other.url, &other.authority);
    assert!(!check(plane, &[]).codes().contains(&"CrdConversionFails"));

    drop(other);
    let commands = until("check finds it", || {
        let checked = check(plane, &[]);
        let found = checked.found.iter().find(|one| one["code"] == "CrdConversionFails");
        found.map(|found| found["commands"].clone())
    });
    assert!(
        !plane
            .kubectl(&[
                "get",
                "instrumentations.v1alpha1.opentelemetry.io",
                "default",
                "--namespace",
                NAMESPACE
            ])
            .ok,
        "nothing converts"
    );
    for command in items(&commands) {
        run(plane, command.as_str().expect("a command"));
    }
    assert!(!check(plane, &[]).codes().contains(&"CrdConversionFails"), "it is mended");
    assert_eq!(read(plane, "v1beta1", "default")["spec"], stored["spec"]);
    assert_eq!(read(plane, "v1alpha1", "old")["spec"]["exporter"]["endpoint"], "http://old:4318");
    let crd = plane.get("default", &["crd", "instrumentations.opentelemetry.io"]);
    assert_eq!(crd["status"]["storedVersions"], json!(["v1beta1"]));
}

/// Runs a command that `check` prints, until it succeeds: the API server learns of a changed CRD by a watch.
fn run(plane: &ControlPlane, command: &str) {
    let programs = [plane.tools(), Path::new(PROGRAM).parent().expect("a folder")].map(Path::to_path_buf);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(programs.into_iter().chain(std::env::split_paths(&path))).expect("paths");
    until(command, || {
        let mut shell = Command::new("bash");
        shell.args(["-o", "pipefail", "-c", command]).current_dir(plane.dir()).env("PATH", &path);
        let (_, _, code) = output(shell.env("KUBECONFIG", plane.kubeconfig()).env("HOME", plane.dir()));
        (code == Some(0)).then_some(())
    });
}

/// How many Instrumentations there are while the versions change.
const MANY: usize = 1000;

/// Pods are injected whatever is served and stored.
pub fn changed(_: &Cluster) {
    let cluster = Cluster::without_controllers();
    let plane = &cluster.plane;
    cluster.namespace(NAMESPACE, &[]);
    let object = |number: usize| {
        json!({
            "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
            "metadata": {"name": format!("one-{number}"), "namespace": NAMESPACE},
            "spec": {"exporter": {"endpoint": format!("http://collector-{number}:4318")}},
        })
    };
    let list: Vec<_> = (0..MANY).map(object).collect();
    plane.apply_server_side(&json!({"apiVersion": "v1", "kind": "List", "items": list}).to_string());
    let pod = |number: usize| {
        let mut pod = java(&format!("order-{number}"));
        pod["metadata"]["namespace"] = NAMESPACE.into();
        let chosen = format!("one-{}", number * 7 % MANY);
        pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-java"] = chosen.into();
        pod
    };
    until("the last Instrumentation is known", || {
        cluster.dry_run(NAMESPACE, &pod(MANY - 1)).is_injected().then_some(())
    });
    let (url, authority) = (cluster.webhook.url_of(""), cluster.webhook.authority());
    let traffic = Traffic::new(plane, 2, &pod, Created::is_injected).dry_run();
    let store_all = |version: &str| {
        run(
            plane,
            &format!(
                "kubectl get instrumentations.{version}.opentelemetry.io -A -o json | kubectl replace -f -"
            ),
        );
        let patch = json!({"status": {"storedVersions": [version]}}).to_string();
        cluster.run(&[
            "patch",
            "crd",
            "instrumentations.opentelemetry.io",
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ]);
    };
    let follows = |version: &str| {
        until(&format!("{version} is followed"), || {
            let is_told = |line: &Value| line["fields"]["version"] == version || line["version"] == version;
            cluster.webhook.log().iter().rev().take(2000).any(is_told).then_some(())
        });
        traffic.goes_on();
    };
    traffic.during(|| {
        serve(plane, "v1alpha1,v1beta1", "v1alpha1", &url, &authority);
        traffic.goes_on();
        serve(plane, "v1alpha1,v1beta1", "v1beta1", &url, &authority);
        follows("v1beta1");
        store_all("v1beta1");
        cluster.apply(&next("one-0", "http://changed:4318", "grpc"));
        let mut changed = pod(0);
        changed["metadata"]["name"] = "changed".into();
        until("a change is followed", || {
            (protocol(&cluster.dry_run(NAMESPACE, &changed)) == "grpc").then_some(())
        });
        serve(plane, "v1alpha1,v1beta1", "v1alpha1", &url, &authority);
        follows("v1alpha1");
        store_all("v1alpha1");
        serve(plane, "v1alpha1", "v1alpha1", &url, &authority);
    });
    let left = plane.get(NAMESPACE, &["instrumentations.v1alpha1.opentelemetry.io"]);
    assert_eq!(items(&left["items"]).count(), MANY);
}
