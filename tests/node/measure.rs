//! What injection adds to the start of a pod, and to the disk of its node. `make bench-node` runs it, and prints a table.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::{Client, Config};
use otel_webhook_testkit::files::{path, replace_between};
use otel_webhook_testkit::runner::{Case, note};
use serde_json::json;

use crate::cluster::Cluster;
use crate::service::{LANGUAGES, Language};
use crate::workload::{DELIVERY, asking};

/// The one case, which is not among those of the suite.
pub const CASES: &[Case<Cluster>] = &[("pods_start", starts)];

/// How many pods are started in each way, one after the other.
const PODS: usize = 10;

const NAMESPACE: &str = "measure";

/// The page that has the table, between two lines.
const PAGE: &str = "docs/operations/sizes.md";
const BEGIN: &str = "<!-- `make bench-node` writes this table. -->\n";
const END: &str = "<!-- The end of the table of `make bench-node`. -->\n";

/// The ways, as the value of the annotation that opts in, and the delivery.
const WAYS: [(&str, &str, &str); 3] = [
    ("without", "false", "initContainer"),
    ("init container", "true", "initContainer"),
    ("image volume", "true", "imageVolume"),
];

/// Some starts of a pod.
struct Starts {
    /// From the creation until the pod is ready, in seconds; in order.
    times: Vec<f64>,
    /// In the volume of the agent, in MiB.
    disk: f64,
}

fn starts(cluster: &Cluster) {
    cluster.namespace(NAMESPACE, &json!({}));
    cluster.instrumentation(NAMESPACE, "default", &json!({}));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let pods = runtime.block_on(pods(cluster));
    let mut table = String::from(
        "| service | agent | first pod | tenth pod | median of ten | disk for each pod |\n|---|---|---|---|---|---|\n",
    );
    for language in LANGUAGES {
        for way in WAYS {
            let Starts { times, disk } = runtime.block_on(start_all(cluster, &pods, language, way));
            let mut sorted = times.clone();
            sorted.sort_by(f64::total_cmp);
            writeln!(
                table,
                "| {} | {} | {:.2} s | {:.2} s | {:.2} s | {disk:.0} MiB |",
                language.name,
                way.0,
                times[0],
                times[PODS - 1],
                sorted[PODS / 2],
            )
            .expect("text can be appended to");
        }
    }
    note(&format!("from creation to Ready, with all images on the node\n{table}"));
    if std::env::var_os("OTEL_WEBHOOK_KEEP_FIGURES").is_some() {
        replace_between(&path(PAGE), BEGIN, END, &table);
    }
}

/// Starts pods one after the other. All of them run in the end, and are deleted.
async fn start_all(
    cluster: &Cluster,
    pods: &Api<Pod>,
    language: Language,
    (_, opts_in, delivery): (&str, &str, &str),
) -> Starts {
    let mut starts = Starts { times: Vec::new(), disk: 0.0 };
    for number in 0..PODS {
        let name = format!("pod-{number}");
        let annotation = format!("inject-{}", language.name);
        let mut pod = asking(&name, &[(&annotation, opts_in)], language.container(&[]));
        pod["metadata"]["annotations"][DELIVERY] = delivery.into();
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        let began = Instant::now();
        let created = pods.create(&PostParams::default(), &pod).await.expect("a pod is never refused");
        await_condition(pods.clone(), &name, is_ready).await.expect("it gets ready");
        starts.times.push(began.elapsed().as_secs_f64());
        let labels = created.metadata.labels.unwrap_or_default();
        assert_eq!(labels.contains_key("otel-webhook/injected"), opts_in == "true", "{labels:?}");
        let volume = format!("opentelemetry-auto-instrumentation-{}", language.name);
        let uid = created.metadata.uid.expect("a uid");
        starts.disk = disk(&cluster.node().empty_dir(&uid, &volume));
    }
    let ran = cluster.kubectl(&["delete", "pods", "--all", "--namespace", NAMESPACE]);
    assert!(ran.ok, "{}", ran.stderr);
    starts
}

fn is_ready(pod: Option<&Pod>) -> bool {
    let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref()).into_iter().flatten();
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// What a folder takes on the disk, in MiB.
fn disk(folder: &Path) -> f64 {
    /// Of `st_blocks`, whatever the file system has.
    const BLOCK: f64 = 512.0;
    let mut blocks = 0;
    let mut open = vec![folder.to_owned()];
    while let Some(current) = open.pop() {
        for entry in std::fs::read_dir(&current).into_iter().flatten().flatten() {
            let metadata = entry.metadata().expect("a file that stays");
            blocks += metadata.blocks();
            if metadata.is_dir() {
                open.push(entry.path());
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "it is shown in whole MiB")]
    let blocks = blocks as f64;
    blocks * BLOCK / f64::from(1 << 20)
}

async fn pods(cluster: &Cluster) -> Api<Pod> {
    // Where the first to ask installs one, it would be another than the product's.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = cluster.node().plane.kubeconfig().to_owned();
    let file = Kubeconfig::read_from(kubeconfig).expect("the administrator's kubeconfig");
    let config =
        Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.expect("a cluster");
    Api::namespaced(Client::try_from(config).expect("a client"), NAMESPACE)
}
