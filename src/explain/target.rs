//! The workloads that `explain` is asked about, named as for kubectl.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::Pod,
};
use kube::core::ApiResource;
use serde_json::Value;

use crate::{
    cluster::{
        object::{text, typed},
        owners::controller,
        reader::{ClusterReader, FailedRequest, Part},
    },
    output::Failure,
};
use otel_webhook_store::reduced::rollouts;

/// The names of a kind; the first is the plural.
type Names = &'static [&'static str];

/// The kinds, with their names.
const KINDS: [(fn() -> ApiResource, Names); 8] = [
    (|| ApiResource::erase::<Deployment>(&()), &["deployments", "deployment", "deploy"]),
    (|| ApiResource::erase::<StatefulSet>(&()), &["statefulsets", "statefulset", "sts"]),
    (|| ApiResource::erase::<DaemonSet>(&()), &["daemonsets", "daemonset", "ds"]),
    (|| ApiResource::erase::<CronJob>(&()), &["cronjobs", "cronjob", "cj"]),
    (rollouts, &["rollouts", "rollout", "ro"]),
    (|| ApiResource::erase::<ReplicaSet>(&()), &["replicasets", "replicaset", "rs"]),
    (|| ApiResource::erase::<Job>(&()), &["jobs", "job"]),
    (|| ApiResource::erase::<Pod>(&()), &["pods", "pod", "po"]),
];

/// The kinds whose objects are explained by their controllers instead, if they have one.
const CONTROLLED: [&str; 3] = ["ReplicaSet", "Job", "Pod"];

/// What is to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One object, as in `deployment/order`.
    Named(usize, String),
    /// The objects of a kind, as in `deployments`.
    Kind(usize),
}

impl Target {
    /// Returns whether it is one object.
    pub fn is_named(&self) -> bool {
        matches!(self, Self::Named(..))
    }
}

/// Returns the singular names of the types.
pub fn types() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(_, names)| names[1])
}

/// Returns the kind of a type; `None` if it is unknown.
pub fn resource(name: &str) -> Option<ApiResource> {
    kind_of(name).ok().map(|kind| (KINDS[kind].0)())
}

/// Reads the arguments: `TYPE/NAME ...`, `TYPE NAME ...` or `TYPE[,TYPE]`.
///
/// # Errors
/// If a type is unknown, or the forms are mixed.
pub fn parse(words: &[String]) -> Result<Vec<Target>, String> {
    let Some(first) = words.first() else { return Ok(Vec::new()) };
    if first.contains('/') {
        return words.iter().map(|word| named(word)).collect();
    }
    let kinds: Vec<usize> = first.split(',').map(kind_of).collect::<Result<_, _>>()?;
    match (&kinds[..], &words[1..]) {
        (_, []) => Ok(kinds.into_iter().map(Target::Kind).collect()),
        ([kind], names) if names.iter().all(|name| !name.contains('/')) => {
            Ok(names.iter().map(|name| Target::Named(*kind, name.clone())).collect())
        }
        _ => Err("expected TYPE/NAME ..., TYPE NAME ... or TYPE[,TYPE]".to_owned()),
    }
}

fn named(word: &str) -> Result<Target, String> {
    match word.split_once('/') {
        Some((kind, name)) if !name.is_empty() && !name.contains('/') => {
            Ok(Target::Named(kind_of(kind)?, name.to_owned()))
        }
        _ => Err(format!("\"{word}\" is not TYPE/NAME, such as deployment/order")),
    }
}

/// Returns the position of a kind. The name may have the group, as kubectl prints it: `deployment.apps`.
fn kind_of(word: &str) -> Result<usize, String> {
    let (name, group) = word.split_once('.').map_or((word, None), |(name, group)| (name, Some(group)));
    let is_it = |(resource, names): &(fn() -> ApiResource, Names)| {
        let has_group = |group: &str| {
            let resource = resource();
            group == resource.group || group == format!("{}.{}", resource.version, resource.group)
        };
        names.iter().any(|known| known.eq_ignore_ascii_case(name)) && group.is_none_or(has_group)
    };
    KINDS.iter().position(is_it).ok_or_else(|| {
        let known: Vec<_> = types().collect();
        format!("\"{word}\" is not a type of workload; valid: {}", known.join(", "))
    })
}

/// The objects to explain.
#[derive(Debug, Default)]
pub struct Found {
    /// Pods and workloads, each with its type.
    pub objects: Vec<Value>,
    /// The kinds that the user may not list.
    pub failed: Vec<FailedRequest>,
}

/// Reads the objects of targets; without targets, all workloads.
///
/// # Errors
/// If one that is named does not exist, or the user may not read it.
pub async fn find(
    cluster: &ClusterReader,
    namespace: &str,
    targets: &[Target],
    labels: Option<&str>,
) -> Result<Found, Failure> {
    let mut found = Found::default();
    for target in targets {
        match target {
            Target::Named(kind, name) => {
                let object = get(cluster, &(KINDS[*kind].0)(), namespace, name).await?;
                let object = by_controller(cluster, namespace, object, &mut found.failed).await;
                found.add(object);
            }
            Target::Kind(kind) => {
                let objects = list(cluster, &(KINDS[*kind].0)(), namespace, labels).await;
                let objects = objects.map_err(|failed| unreadable(&failed))?;
                for object in objects {
                    let object = by_controller(cluster, namespace, object, &mut found.failed).await;
                    found.add(object);
                }
            }
        }
    }
    if targets.is_empty() {
        for (resource, _) in KINDS {
            match list(cluster, &resource(), namespace, labels).await {
                Ok(objects) => {
                    let is_own = |object: &Value| {
                        !CONTROLLED.contains(&&*text(&object["kind"])) || controller(object).is_none()
                    };
                    objects.into_iter().filter(is_own).for_each(|object| found.add(object));
                }
                Err(failed) => found.failed.push(failed),
            }
        }
    }
    Ok(found)
}

/// Returns the namespaces with such objects; without targets, with workloads of the kinds that the user may list, and why
/// others could not be listed.
///
/// # Errors
/// If the user may not list a kind of the targets in all namespaces, or none at all.
pub async fn namespaces(
    cluster: &ClusterReader,
    targets: &[Target],
    labels: Option<&str>,
) -> Result<(BTreeSet<String>, Vec<FailedRequest>), Failure> {
    let asked = |kind: &usize| targets.is_empty() || targets.contains(&Target::Kind(*kind));
    let mut found = BTreeSet::new();
    let mut failed = Vec::new();
    let kinds: Vec<_> = (0..KINDS.len()).filter(asked).map(|kind| (KINDS[kind].0)()).collect();
    for resource in &kinds {
        let take = |object: Value| {
            found.insert(text(&object["metadata"]["namespace"]));
        };
        failed.extend(cluster.each_with(resource, None, labels, Part::Metadata, take).await.err());
    }
    match failed.first() {
        Some(refused) if failed.len() == kinds.len() || !targets.is_empty() => Err(unreadable(refused)),
        _ => Ok((found, failed)),
    }
}

impl Found {
    fn add(&mut self, object: Value) {
        let id = |object: &Value| {
            [&object["apiVersion"], &object["kind"], &object["metadata"]["name"]].map(Value::to_string)
        };
        if self.objects.iter().all(|known| id(known) != id(&object)) {
            self.objects.push(object);
        }
    }
}

async fn get(
    cluster: &ClusterReader,
    resource: &ApiResource,
    namespace: &str,
    name: &str,
) -> Result<Value, Failure> {
    let object = cluster.get_value(resource, Some(namespace), name).await;
    let object = object.map_err(|failed| unreadable(&failed))?.ok_or_else(|| {
        Failure::unreadable(format!("{} \"{name}\" not found in namespace \"{namespace}\"", resource.kind))
    })?;
    Ok(typed(object, &resource.api_version, &resource.kind))
}

fn unreadable(FailedRequest { question, problem }: &FailedRequest) -> Failure {
    Failure::unreadable(format!("not readable by you ({question}): {problem}"))
}

async fn list(
    cluster: &ClusterReader,
    resource: &ApiResource,
    namespace: &str,
    labels: Option<&str>,
) -> Result<Vec<Value>, FailedRequest> {
    let mut objects = Vec::new();
    let take = |object: Value| objects.push(typed(object, &resource.api_version, &resource.kind));
    cluster.each_with(resource, Some(namespace), labels, Part::Whole, take).await?;
    Ok(objects)
}

/// Returns the workload that creates pods such as this one: the controller of a pod, and the controller of that.
/// Controllers of other kinds show their template only in the pod itself.
async fn by_controller(
    cluster: &ClusterReader,
    namespace: &str,
    mut object: Value,
    failed: &mut Vec<FailedRequest>,
) -> Value {
    if text(&object["kind"]) != "Pod" {
        return object;
    }
    while let Some((group, kind, name)) = controller(&object) {
        let known = KINDS.iter().map(|(resource, _)| resource());
        let mut known = known.filter(|resource| resource.group == group && resource.kind == kind);
        let Some(resource) = known.next() else { break };
        match cluster.get_value(&resource, Some(namespace), &name).await {
            Ok(Some(above)) => object = typed(above, &resource.api_version, &resource.kind),
            Ok(None) => break,
            Err(refused) => {
                failed.push(refused);
                break;
            }
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let shown = |target: &Target| match target {
            Target::Named(kind, name) => format!("{}/{name}", (KINDS[*kind].0)().kind),
            Target::Kind(kind) => (KINDS[*kind].0)().kind,
        };
        parse(&words).map(|targets| targets.iter().map(shown).collect())
    }

    #[test]
    fn targets_are_named_as_for_kubectl() {
        for (words, expected) in [
            (&["deployment/order"][..], &["Deployment/order"][..]),
            (
                &["deploy/a", "sts/b", "ds/c", "po/d"],
                &["Deployment/a", "StatefulSet/b", "DaemonSet/c", "Pod/d"],
            ),
            (&["rs/a", "job/b", "cj/c", "rollout/d"], &["ReplicaSet/a", "Job/b", "CronJob/c", "Rollout/d"]),
            (&["deployment.apps/order"], &["Deployment/order"]),
            (&["deployments.v1.apps/order"], &["Deployment/order"]),
            (&["rollout.argoproj.io/order"], &["Rollout/order"]),
            (&["Deployment", "order", "cart"], &["Deployment/order", "Deployment/cart"]),
            (&["deploy,sts"], &["Deployment", "StatefulSet"]),
            (&[], &[]),
        ] {
            assert_eq!(parsed(words).expect("valid"), expected, "{words:?}");
        }
    }

    #[test]
    fn other_words_are_rejected_with_what_is_valid() {
        for (words, problem) in [
            (
                &["service/order"][..],
                "\"service\" is not a type of workload; valid: deployment, statefulset, ",
            ),
            (&["deployment.batch/order"], "\"deployment.batch\" is not a type of workload"),
            (&["deployment/"], "\"deployment/\" is not TYPE/NAME, such as deployment/order"),
            (&["deployment/order", "cart"], "\"cart\" is not TYPE/NAME"),
            (&["deploy,sts", "order"], "expected TYPE/NAME ..., TYPE NAME ... or TYPE[,TYPE]"),
        ] {
            let found = parsed(words).expect_err("invalid");
            assert!(found.starts_with(problem), "{found}");
        }
    }
}
