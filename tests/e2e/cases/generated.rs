//! Generated pods before the real API server: what it takes as it is, it takes
//! injected, whatever the Instrumentation. What it makes of a pod is seen by dry
//! runs, so nothing is kept.

use std::path::Path;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    api::{DynamicObject, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::ApiResource,
};
use otel_webhook::store::Writer;
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_testkit::{
    generated::{
        choices::{Choices, how_many},
        mistakes::break_some,
        pods::{self, Generated, generate},
    },
    objects::items,
    runner::note,
    surroundings::review,
};
use serde_json::Value;

use crate::cases::image_volumes;
use crate::cluster::Cluster;
use crate::registration::{ELSEWHERE, HOME};

/// How many pods are tried unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const PODS: u64 = 2_000;

/// More only wait for each other on two cores.
const IN_FLIGHT: usize = 8;

/// How many refusals of ours are told in full.
const TOLD: usize = 20;

/// What came of a pod.
enum Fate {
    /// It was refused as it was, with these words.
    RefusedAnyway(String),
    /// The core leaves it as it is.
    LeftAlone,
    /// It was taken, and so it was with the patch; whether that injects anything, and how many images it mounts.
    Taken { injected: bool, images: usize },
    /// It was taken, but not with the patch: the seed, and what the API server says.
    RefusedPatched(u64, String),
}

pub fn taken(cluster: &Cluster) {
    let fates = fates(cluster, generate);
    judge(&fates, 4);
}

/// Instrumentations that nobody judged, as files may have them. What is wrong in them keeps
/// many a pod from its agent, but none from being created.
pub fn taken_with_mistakes(cluster: &Cluster) {
    let fates = fates(cluster, |seed| {
        let mut generated = generate(seed);
        break_some(&mut Choices::new(!seed), &mut generated.instrumentation);
        generated
    });
    judge(&fates, 10);
}

/// A namespace that enforces that level.
const RESTRICTED: &str = "restricted";

/// With image volumes, in a namespace that enforces the pod security level `restricted`. The API server must keep the
/// volumes, too.
pub fn taken_with_images(cluster: &Cluster) {
    cluster.namespace(RESTRICTED, &[]);
    cluster.apply(&image_volumes::restricted(RESTRICTED));
    let fates = fates_in(cluster, RESTRICTED, |seed| {
        let mut generated = generate(seed);
        generated.instrumentation["spec"]["delivery"] = "imageVolume".into();
        image_volumes::harden(&mut generated.pod);
        // No webhook gets it.
        generated.pod["metadata"]["labels"][ELSEWHERE] = "".into();
        generated
    });
    let images: usize = fates.iter().map(Fate::images).sum();
    note(&format!("{images} image volumes"));
    assert!(images > fates.len() / 8, "only {images} image volumes");
    judge(&fates, 4);
}

impl Fate {
    fn images(&self) -> usize {
        if let Self::Taken { images, .. } = self { *images } else { 0 }
    }
}

fn fates(cluster: &Cluster, make: fn(u64) -> Generated) -> Vec<Fate> {
    // The registration leaves this namespace out, so each pod comes as it was sent.
    cluster.namespace(HOME, &[]);
    fates_in(cluster, HOME, make)
}

/// The same in another namespace.
fn fates_in(cluster: &Cluster, namespace: &str, make: fn(u64) -> Generated) -> Vec<Fate> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let count = how_many(PODS);
    runtime.block_on(async {
        let pods = pods(cluster.plane.kubeconfig(), namespace).await;
        let tried = stream::iter(0..count).map(|seed| try_pod(&pods, seed, make(seed)));
        tried.buffer_unordered(IN_FLIGHT).collect().await
    })
}

async fn pods(kubeconfig: &Path, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client(kubeconfig).await, namespace, &ApiResource::erase::<Pod>(&()))
}

/// A client of the API server.
pub async fn client(kubeconfig: &Path) -> Client {
    // Another may be there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a usable kubeconfig")).expect("a client")
}

async fn try_pod(pods: &Api<DynamicObject>, seed: u64, generated: Generated) -> Fate {
    if let Err(message) = dry_run(pods, &generated.pod).await {
        return Fate::RefusedAnyway(message);
    }
    let mut writer = Writer::new(DefaultImages::default());
    writer.put(&generated.instrumentation);
    if pods.resource_url().contains(&format!("/{RESTRICTED}/")) {
        writer.put(&image_volumes::restricted(pods::NAMESPACE));
    }
    writer.publish();
    let snapshot = writer.store().snapshot();
    let outcome = review(&snapshot.catalogue, &snapshot.owners, pods::NAMESPACE, &generated.pod);
    if outcome.patch.is_empty() {
        return Fate::LeftAlone;
    }
    let injected = outcome.findings.iter().any(|finding| finding.reason.is_injected());
    let mut patched = generated.pod;
    json_patch::patch(&mut patched, &outcome.patch.operations()).expect("the patch applies");
    let expected = images(&patched);
    match dry_run(pods, &patched).await {
        Ok(taken) if images(&taken) != expected => {
            Fate::RefusedPatched(seed, format!("{} of {expected} images are kept", images(&taken)))
        }
        Ok(_) => Fate::Taken { injected, images: expected },
        Err(message) => {
            Fate::RefusedPatched(seed, format!("{message}\n  by {}", generated.instrumentation["spec"]))
        }
    }
}

/// How many images a pod mounts in containers.
fn images(pod: &Value) -> usize {
    let volumes = items(&pod["spec"]["volumes"]).filter(|volume| volume.get("image").is_some());
    let containers =
        || ["initContainers", "containers"].into_iter().flat_map(|list| items(&pod["spec"][list]));
    let mounts = |volume: &Value| {
        let all = containers().flat_map(|container| items(&container["volumeMounts"]));
        all.filter(|mount| mount["name"] == volume["name"]).count()
    };
    volumes.map(mounts).sum()
}

/// What the API server makes of a pod, or says against it.
async fn dry_run(pods: &Api<DynamicObject>, pod: &Value) -> Result<Value, String> {
    let sent: DynamicObject = serde_json::from_value(pod.clone()).expect("an object");
    let params = PostParams { dry_run: true, ..PostParams::default() };
    match pods.create(&params, &sent).await {
        Ok(taken) => Ok(taken.data),
        Err(kube::Error::Api(status)) => Err(status.message),
        Err(error) => panic!("the API server did not answer: {error}"),
    }
}

/// None may be refused because of us, and one in `injected_of` has to be injected.
fn judge(fates: &[Fate], injected_of: usize) {
    let count = |is: fn(&Fate) -> bool| fates.iter().filter(|fate| is(fate)).count();
    let refused_anyway = count(|fate| matches!(fate, Fate::RefusedAnyway(_)));
    let taken = count(|fate| matches!(fate, Fate::Taken { .. }));
    let injected = count(|fate| matches!(fate, Fate::Taken { injected: true, .. }));
    let left_alone = count(|fate| matches!(fate, Fate::LeftAlone));
    let by_us: Vec<_> = fates
        .iter()
        .filter_map(|fate| match fate {
            Fate::RefusedPatched(seed, message) => Some(format!("pod {seed}: {message}")),
            _ => None,
        })
        .collect();
    note(&format!(
        "{} generated pods: {taken} taken as they are and patched, {injected} of them injected, \
         {left_alone} taken and left alone, \
         {refused_anyway} refused as they are, {} refused because of us",
        fates.len(),
        by_us.len(),
    ));
    let told = by_us.iter().take(TOLD).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(by_us.is_empty(), "{} pods are refused because of us, such as\n{told}", by_us.len());
    // A generator whose pods nobody takes proves nothing.
    let why = fates.iter().find_map(|fate| match fate {
        Fate::RefusedAnyway(message) => Some(message),
        _ => None,
    });
    assert!(
        refused_anyway * 2 <= fates.len(),
        "too few are taken as they are: {}",
        why.unwrap_or(&String::new())
    );
    assert!(injected * injected_of >= fates.len(), "too few are injected");
}
