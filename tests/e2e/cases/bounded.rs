//! Generated pods in generated namespaces with LimitRanges and quotas: what the
//! API server accepts without injection, it accepts with it (D32), and nothing is skipped
//! but a sidecar that it does not accept. Dry runs show what it makes of a pod.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Pod, ResourceQuota, ServiceAccount};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, PostParams},
    core::ApiResource,
};
use otel_webhook_testkit::{
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

use crate::cases::generated::client;
use crate::cluster::Cluster;

/// How many pods are tried unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const PODS: u64 = 1_000;

/// More only wait for each other on two cores.
const IN_FLIGHT: usize = 8;

const LIMIT: Duration = Duration::from_secs(120);

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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let count = how_many(PODS).div_ceil(PODS_OF_ONE);
    let places = runtime.block_on(async {
        let client = client(cluster.plane.kubeconfig()).await;
        let made = stream::iter(0..count).map(|number| make(&client, number));
        made.buffer_unordered(IN_FLIGHT).collect::<Vec<_>>().await
    });
    // What is made last is known last, by the webhook and by the API server.
    wait_until_known(cluster);
    let results = runtime.block_on(async {
        let client = client(cluster.plane.kubeconfig()).await;
        let pods = places.iter().flat_map(|place| {
            let first = place.number * PODS_OF_ONE;
            (first..first + PODS_OF_ONE).map(move |pod| (place, pod))
        });
        let tried = stream::iter(pods).map(|(place, pod)| try_pod(&client, place, pod));
        tried.buffer_unordered(IN_FLIGHT).collect::<Vec<_>>().await
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
async fn make(client: &Client, number: u64) -> Place {
    let (name, made) = (format!("bounded-{number}"), namespaces::namespace(number));
    create::<Namespace>(client, None, &json!({"metadata": {"name": name}})).await;
    create::<ServiceAccount>(client, Some(&name), &json!({"metadata": {"name": "default"}})).await;
    for range in &made.ranges {
        create::<LimitRange>(client, Some(&name), range).await;
    }
    for quota in &made.quotas {
        create::<ResourceQuota>(client, Some(&name), quota).await;
    }
    let instrumentation = json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": "default", "namespace": name}, "spec": made.instrumentation,
    });
    let kind = kube::core::GroupVersionKind::gvk("opentelemetry.io", "v1alpha1", "Instrumentation");
    let api: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        &name,
        &ApiResource::from_gvk_with_plural(&kind, "instrumentations"),
    );
    let sent: DynamicObject = serde_json::from_value(instrumentation).expect("an object");
    api.create(&PostParams::default(), &sent).await.expect("the Instrumentation is stored");
    if !made.quotas.is_empty() {
        until_counted(client, &name).await;
        // The first that is accepted stays; whether one is, is left to chance.
        for pod in number * PODS_OF_ONE..number * PODS_OF_ONE + 3 {
            let mut filler = bounded_pods::pod(pod, &made);
            filler["metadata"]["generateName"] = "filler-".into();
            if send(client, &name, &filler, false).await.is_ok() {
                break;
            }
        }
    }
    Place { name, number, made }
}

/// Waits until the controller has counted what is used of the quotas of a namespace.
async fn until_counted(client: &Client, namespace: &str) {
    let api: Api<ResourceQuota> = Api::namespaced(client.clone(), namespace);
    loop {
        let list = api.list(&ListParams::default()).await.expect("a list");
        if list.iter().all(|quota| quota.status.as_ref().is_some_and(|status| status.used.is_some())) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn create<K>(client: &Client, namespace: Option<&str>, object: &Value)
where
    K: kube::Resource<DynamicType = ()>,
{
    let kind = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let mut object = object.clone();
    object["apiVersion"] = kind.api_version.clone().into();
    object["kind"] = kind.kind.clone().into();
    let sent: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
    match api.create(&PostParams::default(), &sent).await {
        Ok(_) => {}
        // A controller makes the account, too.
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
        Err(error) => panic!("{object} is not accepted: {error}"),
    }
}

/// What the API server makes of a pod, or what it says against it.
async fn send(client: &Client, namespace: &str, pod: &Value, dry_run: bool) -> Result<Value, String> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<Pod>(&()));
    let sent: DynamicObject = serde_json::from_value(pod.clone()).expect("an object");
    match api.create(&PostParams { dry_run, ..PostParams::default() }, &sent).await {
        Ok(made) => Ok(json!(made)),
        Err(kube::Error::Api(status)) => Err(status.message),
        Err(error) => panic!("the API server did not answer: {error}"),
    }
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
    until("LimitRanges and quotas are known", LIMIT, || {
        let args =
            ["create", "--namespace", namespace, "--output", "json", "--dry-run=server", "--filename", "-"];
        let ran = cluster.plane.kubectl_in(&args, &pod.to_string());
        let made: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        let status = made["metadata"]["annotations"]["otel-webhook/status"].as_str().unwrap_or_default();
        let is_known = status.contains("ResourcesRefused") && status.contains("LimitRange \\\"last\\\"");
        (ran.ok && is_known).then_some(())
    });
}

async fn try_pod(client: &Client, place: &Place, number: u64) -> Result<Fate, String> {
    let bare = bounded_pods::pod(number, &place.made);
    let languages = ASKED[Choices::new(!number).below(ASKED.len())];
    let namespaces::Namespace { ranges, quotas, instrumentation } = &place.made;
    let problem = |what: String| {
        let (spec, bounds) = (&bare["spec"], json!([ranges, quotas]));
        format!("pod {number} {languages:?}: {what}\n  {spec}\n  {bounds}\n  {instrumentation}")
    };
    let Ok(without) = send(client, &place.name, &bare, true).await else { return Ok(Fate::RejectedAnyway) };
    // The order of LimitRanges is another for each request, and their defaults could differ.
    let same = if ranges.len() > 1 { settled(&bare, &without) } else { bare.clone() };
    let with = send(client, &place.name, &asking(&same, languages), true).await;
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
    match send(client, &place.name, &sidecar, true).await {
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
            Some("ResourcesRefused") if *language == "go" => is_skipped = true,
            _ => return Err(format!("{language} is not injected: {status}")),
        }
    }
    Ok(is_skipped)
}
