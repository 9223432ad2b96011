//! Generated workloads: what `explain` says of each is what the API server and the webhook make of its pod.

use futures::StreamExt as _;
use otel_webhook_testkit::{
    cluster::{
        client::{Objects, at_once, block_on},
        manifests::{object, workload},
    },
    generated::{choices::how_many, pods::generate},
    objects::items,
    runner::note,
    until::until,
};
use serde_json::{Value, json};

use super::explain;
use crate::cluster::{Cluster, java};

const NAMESPACE: &str = "explained-generated";

/// How many workloads are explained; the pods of one in twenty are rejected, whatever the webhook does.
const WORKLOADS: u64 = 540;

/// The label by which each workload has its own Instrumentation.
const SEED: &str = "seed";

/// What a dry run made of a pod: the name of its Deployment, the pod as it was sent, and as it came back.
type Tried = (String, Value, Result<Value, String>);

pub fn generated(_: &Cluster) {
    let cluster = &Cluster::without_controllers();
    cluster.namespace(NAMESPACE, &[("inject-sdk", "false")]);
    // A new pod gets these before the webhook sees it, a template never does.
    cluster.apply(&json!({"apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": "usual", "namespace": NAMESPACE},
        "spec": {"limits": [{"type": "Container", "default": {"memory": "2Gi"}, "defaultRequest": {"cpu": "5m"}}]}}));
    let count = usize::try_from(how_many(WORKLOADS)).expect("a count");
    let connect = || Objects::connect(cluster.plane.kubeconfig());
    let deployments: Vec<Value> = block_on(async {
        let objects = &connect().await;
        let stored = at_once((0..).map(|seed| store(objects, seed)));
        stored.filter_map(async |stored| stored).take(count).collect().await
    });
    until_known(cluster);
    let run = explain(cluster, &["deployments", "-n", NAMESPACE]);
    // Those that were in flight when there were enough are stored as well.
    assert!(run.code == Some(0) && run.found.len() >= count, "{} of {count}: {}", run.found.len(), run.err);
    let tried: Vec<Tried> = block_on(async {
        let objects = &connect().await;
        at_once(deployments.iter().map(|deployment| dry_run(objects, deployment))).collect().await
    });
    let (mut differ, mut made, mut injected) = (Vec::new(), 0, 0);
    for (name, sent, result) in &tried {
        let explained = run.found.iter().find(|one| one["name"] == **name).expect("each is explained");
        let Ok(pod) = result else { continue };
        made += 1;
        injected += usize::from(explained["added"].as_array().is_some_and(|added| !added.is_empty()));
        if let Err(problem) = same(explained, sent, pod) {
            differ.push(format!("{name}: {problem}"));
        }
    }
    note(&format!(
        "{count} generated workloads are explained; {made} of their pods are accepted by a dry run, containers are \
         added to {injected}; {} differ",
        differ.len(),
    ));
    let shown = differ.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differ.is_empty(), "explain and the dry run differ for {} pods:\n{shown}", differ.len());
    assert!(made * 10 >= count * 9 && injected * 4 >= count, "too few show anything");
}

/// Stores the workload of a number and its Instrumentation, if the API server accepts them.
async fn store(objects: &Objects, seed: u64) -> Option<Value> {
    let mut generated = generate(seed);
    let name = format!("g-{seed}");
    let labels = &mut generated.pod["metadata"]["labels"];
    labels[SEED] = name.as_str().into();
    let template = json!({
        "metadata": {"labels": labels.take(), "annotations": generated.pod["metadata"]["annotations"].take()},
        "spec": generated.pod["spec"].take(),
    });
    let selector = json!({"matchLabels": {(SEED): name}});
    let mut spec = workload(0, &template);
    spec["selector"] = selector.clone();
    let mut instrumentation = generated.instrumentation;
    instrumentation["metadata"] = json!({"name": name, "namespace": NAMESPACE});
    instrumentation["spec"]["selector"] = selector;
    let deployment = objects.create(&object("apps/v1", "Deployment", NAMESPACE, &name, &spec)).await.ok()?;
    // Without one, the workload is explained as well.
    let _ = objects.create(&instrumentation).await;
    Some(deployment)
}

async fn dry_run(objects: &Objects, deployment: &Value) -> Tried {
    let name = deployment["metadata"]["name"].as_str().expect("a name").to_owned();
    let pod = pod_of(&deployment["spec"]["template"], NAMESPACE, &name);
    let made = objects.dry_run(&pod).await;
    (name, pod, made)
}

/// Waits until the webhook knows the Instrumentation that is stored last.
fn until_known(cluster: &Cluster) {
    cluster.instrumentation(NAMESPACE, "last", &json!({"selector": {"matchLabels": {(SEED): "last"}}}));
    let mut probe = java("probe");
    probe["metadata"]["labels"] = json!({(SEED): "last"});
    until("the webhook knows all Instrumentations", || {
        let made = cluster.dry_run(NAMESPACE, &probe);
        made.status().contains(&format!("{NAMESPACE}/last")).then_some(())
    });
}

/// The result for a language, or for an agent of an Instrumentation: outcome, Instrumentation, and containers.
type Outcome = (String, String, String, Vec<String>);

/// The pod that a Deployment makes of a template.
fn pod_of(template: &Value, namespace: &str, name: &str) -> Value {
    let mut pod = template.clone();
    (pod["apiVersion"], pod["kind"]) = ("v1".into(), "Pod".into());
    let metadata = &mut pod["metadata"];
    metadata["namespace"] = namespace.into();
    metadata["generateName"] = format!("{name}-5d4f8-").into();
    metadata["labels"]["pod-template-hash"] = "5d4f8".into();
    metadata["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
        "name": format!("{name}-5d4f8"), "uid": "00000000-0000-4000-8000-000000000001"}]);
    pod
}

/// Compares what `explain` says with the stamp and the containers of the pod that the API server made of `sent`.
fn same(explained: &Value, sent: &Value, made: &Value) -> Result<(), String> {
    let stamp = made["metadata"]["annotations"]["otel-webhook/status"].as_str().unwrap_or("[]");
    let entries: Value = serde_json::from_str(stamp).map_err(|error| error.to_string())?;
    let stamped: Vec<Outcome> = items(&entries).map(of_entry).collect();
    // A pod that only opts out, or that has everything already, gets no stamp.
    let has_stamp = |finding: &&Value| {
        let silent = ["SwitchedOff", "NothingToAdd", "AlreadyInjected"];
        !stamped.is_empty() || !silent.contains(&finding["outcome"].as_str().unwrap_or_default())
    };
    let mut said: Vec<Outcome> = Vec::new();
    for finding in items(&explained["findings"]).filter(has_stamp) {
        let (language, outcome, instrumentation, containers) = of_finding(finding);
        match said.iter_mut().find(|one| one.0 == language && one.1 == outcome) {
            Some(one) => one.3.extend(containers),
            None => said.push((language, outcome, instrumentation, containers)),
        }
    }
    // A long stamp has the number of the containers in place of their names.
    for (one, entry) in said.iter_mut().zip(items(&entries)) {
        let named = items(&entry["containers"]).count();
        let more = entry["moreContainers"].as_u64().unwrap_or_default();
        if one.3.len() as u64 == named as u64 + more {
            one.3.truncate(named);
        }
    }
    equal(&said, &stamped)?;
    let images = |pod: &Value| {
        let of = |list: &str| items(&pod["spec"][list]).map(image).collect::<Vec<_>>();
        [of("initContainers"), of("containers")].concat()
    };
    let before = images(sent);
    let added: Vec<_> = images(made).into_iter().filter(|one| !before.contains(one)).collect();
    let mut said: Vec<_> =
        items(&explained["added"]).map(|one| (text(&one["container"]), text(&one["image"]))).collect();
    said.sort();
    let mut added = added;
    added.sort();
    equal(&said, &added)
}

fn equal<T: PartialEq + std::fmt::Debug>(said: &T, found: &T) -> Result<(), String> {
    if said == found {
        Ok(())
    } else {
        Err(format!("explain says\n  {said:?}\nbut the pod has\n  {found:?}"))
    }
}

fn of_entry(entry: &Value) -> Outcome {
    let containers = items(&entry["containers"]).map(text).collect();
    (agent(entry), text(&entry["outcome"]), text(&entry["instrumentation"]), containers)
}

fn of_finding(finding: &Value) -> Outcome {
    let container = finding["container"].as_str().map(str::to_owned).into_iter().collect();
    (agent(finding), text(&finding["outcome"]), text(&finding["instrumentation"]), container)
}

/// The language, with the agent if it stands for several.
fn agent(of: &Value) -> String {
    [text(&of["language"]), text(&of["agent"])].join(" ")
}

fn image(container: &Value) -> (String, String) {
    (text(&container["name"]), text(&container["image"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
