//! No field of a pod is lost or changed, whichever of them it uses.

use std::collections::BTreeSet;

use otel_webhook_testkit::cluster::created::{AGENT, Created, VARIABLES, name};
use serde_json::{Map, Value, json};

use crate::cluster::Cluster;
use crate::registration::HOME;

const PODS: &str = include_str!("../full-pod.yaml");

/// Fields that no pod can be created with, and why; a prefix stands for all below it.
const NOT_SENT: [(&str, &str); 4] = [
    ("spec.ephemeralContainers", "refused at creation; they are added to pods that run"),
    ("spec.resources.claims", "refused: claims are of containers"),
    ("spec.containers.readinessProbe.terminationGracePeriodSeconds", "refused: readiness ends nothing"),
    ("spec.volumes.ephemeral.volumeClaimTemplate.metadata", "refused, but for labels and annotations"),
];

/// Fields that the API server takes and drops before webhooks see the pod,
/// because their feature is off by default.
const DROPPED: [(&str, &str); 4] = [
    ("spec.containers.lifecycle.stopSignal", "ContainerStopSignals"),
    ("spec.schedulingGroup", "GenericWorkload"),
    ("spec.volumes.projected.sources.clusterTrustBundle", "ClusterTrustBundleProjection"),
    ("spec.volumes.projected.sources.podCertificate", "PodCertificateRequest"),
];

/// What an injected pod is told by annotation, where it says nothing itself.
const ADDED_ANNOTATIONS: [&str; 3] = [
    "otel-webhook/status",
    "otel-webhook/message",
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
];

pub fn with_and_without(cluster: &Cluster) {
    let pods: Vec<Value> = serde_saphyr::from_multiple(PODS).expect("YAML");
    let sent = all_used(&pods);
    nothing_is_missing(cluster, &sent);
    prepare(cluster);
    let mut kept = Vec::new();
    for pod in &pods {
        // The registration leaves the product's own namespace out.
        let without = cluster.create(HOME, pod);
        assert!(without.is_untouched(), "{}", without.pod);
        let with = cluster.create("every-field", pod);
        assert!(with.is_injected(), "{}: {}", with.name(), with.warnings);
        differ_by_the_injection(&with, &without);
        kept.push(without.pod);
    }
    let kept = all_used(&kept);
    let lost: Vec<_> = sent.difference(&kept).filter(|path| !is_listed(&DROPPED, path)).collect();
    assert!(lost.is_empty(), "the API server dropped {lost:#?}");
    for (path, feature) in DROPPED {
        assert!(!kept.contains(path), "{path} is kept: {feature} is on, so take it off the list");
    }
}

/// All that the API server's own description of a pod's specification names is sent, or is
/// on the list of what cannot be.
fn nothing_is_missing(cluster: &Cluster, sent: &BTreeSet<String>) {
    let openapi = cluster.run(&["get", "--raw", "/openapi/v2"]).stdout;
    let openapi = serde_json::from_str(&openapi).expect("JSON");
    let defined = defined_paths(&openapi, "io.k8s.api.core.v1.PodSpec", "spec");
    assert!(defined.contains("spec.containers.env.valueFrom.fileKeyRef.path"), "not walked: {defined:#?}");
    let defined: BTreeSet<_> = defined.iter().map(|path| like_a_container(path)).collect();
    let missing: Vec<_> = defined.difference(sent).filter(|path| !is_listed(&NOT_SENT, path)).collect();
    assert!(missing.is_empty(), "full-pod.yaml does not use {missing:#?}");
    for (path, _) in NOT_SENT {
        assert!(
            defined.iter().any(|defined| is_below(defined, path)),
            "there is no {path}; take it off the list"
        );
    }
}

/// What the pods refer to and the API server insists on, and an
/// Instrumentation on both sides.
fn prepare(cluster: &Cluster) {
    cluster.instrumented_namespace("every-field");
    cluster.instrumentation(HOME, "default", &json!({}));
    cluster.apply(&json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "full"},
         "value": 1000, "preemptionPolicy": "Never"},
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "full"},
         "handler": "full", "overhead": {"podFixed": {"cpu": "10m", "memory": "16Mi"}}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "full", "namespace": "every-field"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "full", "namespace": HOME}},
    ]}));
}

fn differ_by_the_injection(with: &Created, without: &Created) {
    let mut stripped = with.pod.clone();
    strip(&mut stripped);
    let (stripped, without) = (comparable(&stripped), comparable(&without.pod));
    assert_eq!(stripped, without, "\nwith: {stripped:#}\nwithout: {without:#}");
}

/// Takes off what an injection adds, and nothing else.
fn strip(pod: &mut Value) {
    remove(&mut pod["metadata"], "labels", |key, _| key == "otel-webhook/injected");
    remove(&mut pod["metadata"], "annotations", |key, _| ADDED_ANNOTATIONS.contains(&key));
    let spec = &mut pod["spec"];
    remove(spec, "initContainers", |_, container| name(container) == AGENT);
    remove(spec, "volumes", |_, volume| name(volume) == AGENT);
    let containers = spec["containers"].as_array_mut().expect("containers");
    let app = containers.iter_mut().find(|container| name(container) == "app").expect("the target");
    remove(app, "volumeMounts", |_, mount| name(mount) == AGENT);
    remove(app, "env", |_, variable| VARIABLES.contains(&name(variable)));
}

/// Removes entries of a member that is a map or a list, and the member when
/// that leaves none: the API server does not keep empty ones.
fn remove(object: &mut Value, member: &str, is_added: impl Fn(&str, &Value) -> bool) {
    let empty = match &mut object[member] {
        Value::Object(entries) => {
            entries.retain(|key, value| !is_added(key, value));
            entries.is_empty()
        }
        Value::Array(items) => {
            items.retain(|item| !is_added("", item));
            items.is_empty()
        }
        _ => true,
    };
    if empty {
        object.as_object_mut().expect("an object").shift_remove(member);
    }
}

/// Specification and metadata, but for what tells any two objects apart.
fn comparable(pod: &Value) -> Value {
    let mut metadata: Map<String, Value> = pod["metadata"].as_object().expect("metadata").clone();
    for own in ["creationTimestamp", "managedFields", "namespace", "resourceVersion", "uid"] {
        metadata.remove(own);
    }
    json!({"metadata": metadata, "spec": pod["spec"]})
}

fn all_used(pods: &[Value]) -> BTreeSet<String> {
    let used = pods.iter().flat_map(|pod| used_paths(&pod["spec"], "spec"));
    used.map(|path| like_a_container(&path)).collect()
}

/// Init containers are of the same definition; what one of the two kinds may
/// not have, the other one uses.
fn like_a_container(path: &str) -> String {
    path.replacen("spec.initContainers.", "spec.containers.", 1)
}

fn is_listed(list: &[(&str, &str)], path: &str) -> bool {
    list.iter().any(|(listed, _)| is_below(path, listed))
}

fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Every field below a definition of an API's description, down to what has no
/// its own fields.
fn defined_paths(openapi: &Value, definition: &str, path: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    Walk { openapi, paths: &mut paths }.properties(definition, path, &mut vec![definition]);
    paths
}

/// Every path that an object uses, with those of the objects in it.
fn used_paths(value: &Value, path: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::from([path.to_owned()]);
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                paths.extend(used_paths(member, &format!("{path}.{name}")));
            }
        }
        Value::Array(items) => paths.extend(items.iter().flat_map(|item| used_paths(item, path))),
        _ => {}
    }
    paths
}

struct Walk<'a> {
    openapi: &'a Value,
    paths: &'a mut BTreeSet<String>,
}

impl<'a> Walk<'a> {
    /// `within` are the definitions on the way, for those that contain themselves.
    fn properties(&mut self, definition: &'a str, path: &str, within: &mut Vec<&'a str>) -> bool {
        let properties = self.openapi["definitions"][definition]["properties"].as_object();
        for (name, schema) in properties.into_iter().flatten() {
            let path = format!("{path}.{name}");
            let inner = referred(schema).or_else(|| referred(&schema["items"]));
            match inner.filter(|inner| !within.contains(inner)) {
                Some(inner) => {
                    within.push(inner);
                    if !self.properties(inner, &path, within) {
                        self.paths.insert(path);
                    }
                    within.pop();
                }
                None => {
                    self.paths.insert(path);
                }
            }
        }
        properties.is_some()
    }
}

fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/definitions/")
}
