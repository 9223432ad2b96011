//! Generated pods in generated namespaces with LimitRanges and quotas: what the
//! API server accepts without injection, it accepts with it (D32), and nothing is skipped
//! but a sidecar that it does not accept. Dry runs show what it makes of a pod.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::ListParams;
use otel_webhook_testkit::{
    cluster::{
        client::{Objects, at_once, block_on},
        manifests::instrumentation,
    },
    generated::{
        bounded_pods::{self, ASKED, asking, said_of_go},
        choices::{Choices, how_many},
        namespaces::{self, CLASSES, PODS_OF_ONE},
    },
    models::amounts::{class, effective},
    runner::note,
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// How many pods are tried unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const PODS: u64 = 1_000;

/// How many problems are told in full.
const TOLD: usize = 10;

/// What came of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It is rejected without injection.
    RejectedAnyway,
    /// It is accepted with and without it.
    Injected,
    /// The same, with Go skipped since its sidecar would not be accepted.
    GoSkipped,
}

/// A namespace with what bounds it.
struct Place {
    name: String,
    number: u64,
    made: namespaces::Namespace,
}

pub fn accepted(cluster: &Cluster) {
    let _all = cluster.webhook.restart_with(&["--languages", "all"]);
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": CLASSES[0]}, "value": 1000});
    cluster.apply(&class);
    let count = how_many(PODS).div_ceil(PODS_OF_ONE);
    let connect = || Objects::connect(cluster.plane.kubeconfig());
    let places: Vec<Place> = block_on(async {
        let objects = &connect().await;
        at_once((0..count).map(|number| make(objects, number))).collect().await
    });
    // What is made last is known last, by the webhook and by the API server.
    wait_until_known(cluster);
    let results = block_on(async {
        let objects = &connect().await;
        let pods = places.iter().flat_map(|place| {
            let first = place.number * PODS_OF_ONE;
            (first..first + PODS_OF_ONE).map(move |pod| (place, pod))
        });
        at_once(pods.map(|(place, pod)| try_pod(objects, place, pod))).collect().await
    });
    judge(results);
}

fn judge(results: Vec<Result<Fate, String>>) {
    let mut fates: BTreeMap<Fate, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for result in results {
        match result {
            Ok(fate) => *fates.entry(fate).or_default() += 1,
            Err(problem) => problems.push(problem),
        }
    }
    note(&format!("generated pods in bounded namespaces: {fates:?}, {} problems", problems.len()));
    let told = problems.iter().take(TOLD).map(String::as_str).collect::<Vec<_>>().join("\n\n");
    assert!(problems.is_empty(), "{} pods, such as\n{told}", problems.len());
    let all: usize = fates.values().sum();
    let of = |fate: Fate| fates.get(&fate).copied().unwrap_or_default();
    assert!(of(Fate::Injected) * 3 >= all, "too few are accepted: {fates:?}");
    assert!(of(Fate::GoSkipped) > 0, "no quota is ever exhausted: {fates:?}");
}

/// Makes the namespace of a number, with a pod in it that uses some of its quotas.
async fn make(objects: &Objects, number: u64) -> Place {
    let (name, made) = (format!("bounded-{number}"), namespaces::namespace(number));
    create(objects, "Namespace", None, &json!({"metadata": {"name": name}})).await;
    create(objects, "ServiceAccount", Some(&name), &json!({"metadata": {"name": "default"}})).await;
    for (kind, bounds) in [("LimitRange", &made.ranges), ("ResourceQuota", &made.quotas)] {
        for object in bounds {
            create(objects, kind, Some(&name), object).await;
        }
    }
    let sent = instrumentation(&name, "default", &made.instrumentation);
    objects.create(&sent).await.expect("the Instrumentation is stored");
    if !made.quotas.is_empty() {
        until_counted(objects, &name).await;
        // The first that is accepted stays; whether one is, is left to chance.
        for pod in number * PODS_OF_ONE..number * PODS_OF_ONE + 3 {
            let mut filler = bounded_pods::pod(pod, &made);
            filler["metadata"]["generateName"] = "filler-".into();
            if objects.create(&of("Pod", Some(&name), &filler)).await.is_ok() {
                break;
            }
        }
    }
    Place { name, number, made }
}

/// Waits until the controller has counted what is used of the quotas of a namespace.
async fn until_counted(objects: &Objects, namespace: &str) {
    let api = objects.api(&of("ResourceQuota", Some(namespace), &json!({"metadata": {}})));
    loop {
        let list = api.list(&ListParams::default()).await.expect("a list");
        if list.iter().all(|quota| quota.data["status"]["used"].is_object()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An object of this kind in a namespace.
fn of(kind: &str, namespace: Option<&str>, object: &Value) -> Value {
    let mut object = object.clone();
    (object["apiVersion"], object["kind"]) = ("v1".into(), kind.into());
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = namespace.into();
    }
    object
}

async fn create(objects: &Objects, kind: &str, namespace: Option<&str>, object: &Value) {
    if let Err(message) = objects.create(&of(kind, namespace, object)).await {
        // A controller makes the account, too.
        assert!(message.contains("already exists"), "{object} is not accepted: {message}");
    }
}

/// What the API server makes of a pod, or its message.
async fn send(objects: &Objects, namespace: &str, pod: &Value) -> Result<Value, String> {
    objects.dry_run(&of("Pod", Some(namespace), pod)).await
}

/// Waits for the effects of a LimitRange, a quota and an Instrumentation that are made after all others.
fn wait_until_known(cluster: &Cluster) {
    let namespace = "bounded-last";
    cluster.namespace(namespace, &[]);
    let range = json!({"type": "Container", "default": {"memory": "300Mi"}, "min": {"memory": "99Mi"}});
    for (kind, spec) in [
        ("LimitRange", json!({"limits": [range]})),
        ("ResourceQuota", json!({"hard": {"limits.memory": "310Mi"}})),
    ] {
        let metadata = json!({"name": "last", "namespace": namespace});
        cluster.apply(&json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}));
    }
    cluster.instrumentation(namespace, "default", &json!({}));
    let pod = crate::cluster::asking(
        "last",
        &[
            ("inject-java", "true"),
            ("inject-go", "true"),
            ("container-names", "app"),
            ("otel-go-auto-target-exe", "/app"),
        ],
    );
    until("LimitRanges and quotas are known", || {
        let args =
            ["create", "--namespace", namespace, "--output", "json", "--dry-run=server", "--filename", "-"];
        let ran = cluster.plane.kubectl_in(&args, &pod.to_string());
        let made: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        let status = made["metadata"]["annotations"]["otel-webhook/status"].as_str().unwrap_or_default();
        let is_known = status.contains("ResourcesRejected") && status.contains("LimitRange \\\"last\\\"");
        (ran.ok && is_known).then_some(())
    });
}

async fn try_pod(objects: &Objects, place: &Place, number: u64) -> Result<Fate, String> {
    let bare = bounded_pods::pod(number, &place.made);
    let languages = ASKED[Choices::new(!number).below(ASKED.len())];
    let namespaces::Namespace { ranges, quotas, instrumentation } = &place.made;
    let problem = |what: String| {
        let (spec, bounds) = (&bare["spec"], json!([ranges, quotas]));
        format!("pod {number} {languages:?}: {what}\n  {spec}\n  {bounds}\n  {instrumentation}")
    };
    let Ok(without) = send(objects, &place.name, &bare).await else { return Ok(Fate::RejectedAnyway) };
    // The order of LimitRanges is another for each request, and their defaults could differ.
    let same = if ranges.len() > 1 { settled(&bare, &without) } else { bare.clone() };
    let with = send(objects, &place.name, &asking(&same, languages)).await;
    let with = with.map_err(|message| problem(format!("rejected with injection: {message}")))?;
    let is_skipped = skipped(languages, &with).map_err(problem)?;
    if !languages.contains(&"go") || is_skipped {
        let rating = |pod: &Value| (effective(pod), class(pod), pod["status"]["qosClass"].clone());
        if rating(&without) != rating(&with) {
            return Err(problem(format!("{:?} became {:?}", rating(&without), rating(&with))));
        }
    }
    if !is_skipped {
        return Ok(Fate::Injected);
    }
    // The defaults of several LimitRanges could let it in by chance.
    if ranges.len() > 1 {
        return Ok(Fate::GoSkipped);
    }
    let sidecar = with_sidecar(&settled(&bare, &without), &said_of_go(instrumentation));
    match send(objects, &place.name, &sidecar).await {
        Ok(_) => Err(problem("Go is skipped, and its sidecar would be accepted".to_owned())),
        Err(_) => Ok(Fate::GoSkipped),
    }
}

/// The pod with a sidecar that has these resources.
fn with_sidecar(pod: &Value, resources: &Value) -> Value {
    let mut pod = pod.clone();
    let mut sidecar =
        json!({"name": "sidecar", "image": "registry.example.com/go:1", "resources": resources});
    let spec = pod["spec"].as_object_mut().expect("a specification");
    let ends = spec.get("restartPolicy").is_some_and(|policy| policy != "Always");
    if ends {
        sidecar["restartPolicy"] = "Always".into();
    }
    let list = spec.entry(if ends { "initContainers" } else { "containers" }).or_insert_with(|| json!([]));
    list.as_array_mut().expect("a list").push(sidecar);
    pod
}

/// A pod with the resources that LimitRanges gave it this time.
fn settled(pod: &Value, made: &Value) -> Value {
    let mut pod = pod.clone();
    for list in ["containers", "initContainers"] {
        let all = pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (index, container) in all.enumerate() {
            container["resources"] = made["spec"][list][index]["resources"].clone();
        }
    }
    // What is set for the pod as a whole was defaulted before LimitRanges came.
    if made["spec"]["resources"].is_object() {
        pod["spec"]["resources"] = made["spec"]["resources"].clone();
    }
    pod
}

/// Whether Go is skipped. Nothing else may be.
fn skipped(languages: &[&str], with: &Value) -> Result<bool, String> {
    let status = with["metadata"]["annotations"]["otel-webhook/status"].as_str().unwrap_or("[]");
    let entries: Vec<Value> = serde_json::from_str(status).expect("the stamp is JSON");
    let mut is_skipped = false;
    for language in languages {
        let outcome = entries.iter().find(|entry| entry["language"] == **language);
        match outcome.and_then(|entry| entry["outcome"].as_str()) {
            Some("Injected") => {}
            Some("ResourcesRejected") if *language == "go" => is_skipped = true,
            _ => return Err(format!("{language} is not injected: {status}")),
        }
    }
    Ok(is_skipped)
}
