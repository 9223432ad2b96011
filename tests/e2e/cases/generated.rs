//! Generated pods before the real API server. What it makes of a pod is seen by dry runs, so nothing is kept.
//!
//! What it accepts as it is, it accepts injected, whatever the Instrumentation. And the pod is the same whether its
//! added containers come with the token or get it from the API server (D31); the model of its plugin, with which more
//! pods are tried in `crates/inject/tests`, is compared as well.

use futures::StreamExt as _;
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::Outcome;
use otel_webhook_store::Writer;
use otel_webhook_testkit::{
    cluster::client::{Objects, at_once, block_on},
    generated::{
        choices::{Choices, how_many},
        mistakes::break_some,
        pods::{self, Generated, generate},
        tokens::with_tokens,
    },
    models::service_account::{TOKEN_VOLUME, mounted, without_added_tokens},
    objects::{compare, items},
    runner::note,
    surroundings::review,
};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::registration::{ELSEWHERE, HOME};

/// How many pods are tried unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const PODS: u64 = 2_000;

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

/// Instrumentations that nothing validated, as files may have them. What is wrong in them keeps
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

/// In a namespace that enforces the pod security level `restricted`, half of the pods with image volumes, which the API
/// server must keep.
pub fn taken_where_restricted(cluster: &Cluster) {
    cluster.namespace(RESTRICTED, &[]);
    cluster.apply(&restricted(RESTRICTED));
    let fates = fates_in(cluster, RESTRICTED, |seed| {
        let mut generated = generate(seed);
        if seed % 2 == 0 {
            generated.instrumentation["spec"]["delivery"] = "imageVolume".into();
        }
        harden(&mut generated.pod);
        // No webhook gets it.
        generated.pod["metadata"]["labels"][ELSEWHERE] = "".into();
        generated
    });
    let images: usize = fates.iter().map(Fate::images).sum();
    note(&format!("{images} image volumes"));
    assert!(images > fates.len() / 16, "only {images} image volumes");
    judge(&fates, 4);
}

fn restricted(name: &str) -> Value {
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// Makes a pod acceptable at that level.
fn harden(pod: &mut Value) {
    pod["spec"]["securityContext"] =
        json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    for list in ["initContainers", "containers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            container["securityContext"] =
                json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
        }
    }
}

impl Fate {
    fn images(&self) -> usize {
        if let Self::Taken { images, .. } = self { *images } else { 0 }
    }
}

fn fates(cluster: &Cluster, make: fn(u64) -> Generated) -> Vec<Fate> {
    // The registration leaves this namespace out, so each pod comes as it was sent.
    fates_in(cluster, HOME, make)
}

/// The same in another namespace.
fn fates_in(cluster: &Cluster, namespace: &str, make: fn(u64) -> Generated) -> Vec<Fate> {
    block_on(async {
        let objects = &Objects::connect(cluster.plane.kubeconfig()).await;
        let tried = (0..how_many(PODS)).map(|seed| try_pod(objects, namespace, seed, make(seed)));
        at_once(tried).collect().await
    })
}

/// What the API server makes of a pod in a namespace.
async fn dry_run(objects: &Objects, namespace: &str, pod: &Value) -> Result<Value, String> {
    let mut pod = pod.clone();
    (pod["apiVersion"], pod["kind"]) = ("v1".into(), "Pod".into());
    pod["metadata"]["namespace"] = namespace.into();
    objects.dry_run(&pod).await
}

/// What injection makes of a pod next to these objects.
fn inject(around: &[&Value], pod: &Value) -> Outcome {
    let mut writer = Writer::new(DefaultImages::default());
    for object in around {
        writer.put(object);
    }
    writer.publish();
    let snapshot = writer.store().snapshot();
    review(&snapshot.catalogue, &snapshot.owners, pods::NAMESPACE, pod)
}

fn patched(pod: &Value, outcome: &Outcome) -> Value {
    let mut patched = pod.clone();
    json_patch::patch(&mut patched, &outcome.patch.operations()).expect("the patch applies");
    patched
}

fn is_injected(outcome: &Outcome) -> bool {
    outcome.findings.iter().any(|finding| finding.reason.is_injected())
}

async fn try_pod(objects: &Objects, namespace: &str, seed: u64, generated: Generated) -> Fate {
    if let Err(message) = dry_run(objects, namespace, &generated.pod).await {
        return Fate::RefusedAnyway(message);
    }
    let level = restricted(pods::NAMESPACE);
    let around = [&generated.instrumentation, &level];
    let outcome = inject(if namespace == RESTRICTED { &around } else { &around[..1] }, &generated.pod);
    if outcome.patch.is_empty() {
        return Fate::LeftAlone;
    }
    let injected = is_injected(&outcome);
    let patched = patched(&generated.pod, &outcome);
    let expected = images(&patched);
    match dry_run(objects, namespace, &patched).await {
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

/// How many pods with tokens are tried, unless there are to be more.
const WITH_TOKENS: u64 = 400;

/// What came of a pod with a token.
#[derive(PartialEq, Eq)]
enum TokenFate {
    Rejected,
    NotInjected,
    /// Whether the API server left it as the webhook made it.
    Injected {
        is_final: bool,
    },
}

pub fn same_pod(cluster: &Cluster) {
    let fates: Vec<TokenFate> = block_on(async {
        let objects = &Objects::connect(cluster.plane.kubeconfig()).await;
        at_once((0..how_many(WITH_TOKENS)).map(|seed| try_tokens(objects, seed))).collect().await
    });
    let count = |wanted: &TokenFate| fates.iter().filter(|fate| *fate == wanted).count();
    let (last, not_last) = (TokenFate::Injected { is_final: true }, TokenFate::Injected { is_final: false });
    let counts = [&last, &not_last, &TokenFate::NotInjected, &TokenFate::Rejected].map(count);
    let [unchanged, changed, not_injected, rejected] = counts;
    note(&format!(
        "{} generated pods: {unchanged} injected and not changed afterwards, {changed} changed, \
         {not_injected} not injected, {rejected} rejected",
        fates.len()
    ));
    // A generator whose pods nobody takes proves nothing.
    assert!(unchanged * 4 >= fates.len() && changed > 0 && rejected * 2 <= fates.len());
}

async fn try_tokens(objects: &Objects, seed: u64) -> TokenFate {
    let generated = with_tokens(seed);
    let dry_run = async |pod: &Value| dry_run(objects, HOME, pod).await;
    let Ok(sent) = dry_run(&generated.pod).await else { return TokenFate::Rejected };
    let suffix = volumes(&sent).find_map(|name| name.strip_prefix(TOKEN_VOLUME)).unwrap_or_default();
    assert_same(seed, "the model's first call", &tokens(&mounted(&generated.pod, suffix)), &tokens(&sent));
    let outcome = inject(&[&generated.instrumentation], &sent);
    if !is_injected(&outcome) {
        return TokenFate::NotInjected;
    }
    let after = patched(&sent, &outcome);

    let one = dry_run(&after).await.expect("it is accepted injected");
    let two = dry_run(&without_added_tokens(&sent, &after)).await.expect("it is accepted without the token");

    let is_final = tokens(&one) == tokens(&after);
    let is_final_by_model = mounted(&after, "again") == after;
    assert_eq!(is_final, is_final_by_model, "pod {seed}: the model's second call\n{}", after["spec"]);
    // A volume that the plugin makes has another name each time.
    if is_final {
        assert_same(seed, "with one review and with two", &one["spec"], &two["spec"]);
    }
    TokenFate::Injected { is_final }
}

fn assert_same(seed: u64, what: &str, one: &Value, other: &Value) {
    let differences = compare("", one, other);
    assert!(differences.is_empty(), "pod {seed}: {what}:\n{}", differences.join("\n"));
}

/// What the plugin changes: the names of volumes, and the mounts of each container.
fn tokens(pod: &Value) -> Value {
    let mounts = ["initContainers", "containers"].map(|list| {
        let all = items(&pod["spec"][list]);
        all.map(|container| items(&container["volumeMounts"]).cloned().collect()).collect::<Vec<Value>>()
    });
    json!({"volumes": volumes(pod).collect::<Vec<_>>(), "mounts": mounts})
}

fn volumes(pod: &Value) -> impl Iterator<Item = &str> {
    items(&pod["spec"]["volumes"]).filter_map(|volume| volume["name"].as_str())
}
