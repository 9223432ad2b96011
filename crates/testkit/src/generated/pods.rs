//! Pods and Instrumentations. Most of the pods are accepted by an API server; their unusual fields
//! are those that injection has to handle.

use otel_webhook_inject::language::LANGUAGES;
use serde_json::{Map, Value, json};

use super::{agents, choices::Choices};

/// The namespace of every generated pod.
pub const NAMESPACE: &str = "generated";

/// A pod, and the Instrumentation of its namespace.
pub struct Generated {
    /// The pod.
    pub pod: Value,
    /// The Instrumentation.
    pub instrumentation: Value,
}

/// Variables that injection sets or refers to, in addition to those that it extends.
const VARIABLES: [&str; 11] = [
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SERVICE_NAME",
    "OTEL_NODE_IP",
    "OTEL_POD_IP",
    "OTEL_RESOURCE_ATTRIBUTES_POD_NAME",
    "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME",
    "OTEL_TRACES_SAMPLER",
    "OTEL_PROPAGATORS",
    "OTEL_DOTNET_AUTO_HOME",
    "OTEL_GO_AUTO_TARGET_EXE",
    "OTEL_INJECT_ORIGINAL_JAVA_TOOL_OPTIONS",
];

/// Variables that injection extends, sets or refers to.
fn variables() -> Vec<&'static str> {
    LANGUAGES.iter().flat_map(|language| language.extended).copied().chain(VARIABLES).collect()
}

/// Names that injection would take.
const TAKEN_VOLUMES: [&str; 4] = [
    "opentelemetry-auto-instrumentation-java",
    "otel-auto-secret-certs",
    "kernel-debug",
    "otel-apache-agent",
];
const TAKEN_PATHS: [&str; 4] = [
    "/otel-auto-instrumentation-java-app",
    "/otel-auto-instrumentation-nodejs",
    "/otel-auto-instrumentation-secret-certs",
    "/etc/nginx",
];

/// The pod and the Instrumentation of a number.
pub fn generate(seed: u64) -> Generated {
    let mut choices = Choices::new(seed);
    let names = container_names(&mut choices);
    let volumes = volumes(&mut choices);
    let containers: Vec<Value> = names.0.iter().map(|name| container(&mut choices, name, &volumes)).collect();
    let init: Vec<Value> = names.1.iter().map(|name| init_container(&mut choices, name, &volumes)).collect();
    let mut spec = json!({"containers": containers, "volumes": volumes.iter().map(|name| json!({"name": name, "emptyDir": {}})).collect::<Vec<_>>()});
    if !init.is_empty() {
        spec["initContainers"] = json!(init);
    }
    pod_level(&mut choices, &mut spec);
    let mut metadata = json!({"generateName": "generated-", "annotations": annotations(&mut choices, &names), "labels": labels(&mut choices)});
    if choices.chance(50) {
        metadata["ownerReferences"] = json!([owner(&mut choices)]);
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    let mut instrumentation = instrumentation(&mut choices);
    agents::add(&mut choices, &mut pod, &mut instrumentation);
    Generated { pod, instrumentation }
}

fn container_names(choices: &mut Choices) -> (Vec<&'static str>, Vec<&'static str>) {
    let mut regular = choices.some(&["app", "web", "proxy"], 60);
    if regular.is_empty() {
        regular.push("app");
    }
    (regular, choices.some(&["setup", "migrate", "mesh"], 30))
}

fn volumes(choices: &mut Choices) -> Vec<&'static str> {
    let mut names = choices.some(&["data", "cache", "config"], 40);
    if choices.chance(8) {
        names.push(choices.one(&TAKEN_VOLUMES));
    }
    names
}

fn container(choices: &mut Choices, name: &str, volumes: &[&str]) -> Value {
    // The clone of a container is told by its image.
    let image = choices.one(&["", ":1.2", "@sha256:cut"]);
    let mut container = json!({"name": name, "image": format!("registry.example.com:5000/{name}{image}")});
    let env: Vec<Value> = (0..choices.below(6)).map(|_| variable(choices)).collect();
    if !env.is_empty() || choices.chance(10) {
        container["env"] = json!(env);
    }
    if choices.chance(20) {
        container["envFrom"] = json!([{"configMapRef": {"name": "settings"}}]);
    }
    let mounts = mounts(choices, volumes);
    if !mounts.is_empty() {
        container["volumeMounts"] = json!(mounts);
    }
    if choices.chance(40) {
        container["securityContext"] = json!({"runAsNonRoot": true, "runAsUser": 1000 + choices.below(9)});
    } else if choices.chance(10) {
        container["securityContext"] = choices
            .one(&[&json!({"runAsNonRoot": true}), &json!({"runAsNonRoot": false}), &json!({"runAsUser": 0})])
            .clone();
    }
    if let Some(resources) = resources(choices) {
        container["resources"] = resources;
    }
    container
}

fn init_container(choices: &mut Choices, name: &str, volumes: &[&str]) -> Value {
    let mut init = container(choices, name, volumes);
    if choices.chance(40) {
        init["restartPolicy"] = json!("Always");
    }
    init
}

fn variable(choices: &mut Choices) -> Value {
    let name = if choices.chance(70) { choices.one(&variables()) } else { choices.one(&["A", "B", "C_D"]) };
    match choices.below(8) {
        0 => json!({"name": name, "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "k"}}}),
        1 => {
            json!({"name": name, "valueFrom": {"secretKeyRef": {"name": "secret", "key": "k", "optional": choices.chance(50)}}})
        }
        2 => json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
        3 => json!({"name": name}),
        4 => json!({"name": name, "value": "$(A) and $(B)"}),
        5 => json!({"name": name, "value": "service.version=7,team=a=b,"}),
        _ => json!({"name": name, "value": "own value"}),
    }
}

fn mounts(choices: &mut Choices, volumes: &[&str]) -> Vec<Value> {
    let mut mounts: Vec<Value> = volumes
        .iter()
        .filter(|_| choices.chance(50))
        .map(|name| json!({"name": name, "mountPath": format!("/{name}")}))
        .collect();
    if let (Some(volume), true) = (volumes.first(), choices.chance(10)) {
        mounts.push(json!({"name": volume, "mountPath": choices.one(&TAKEN_PATHS)}));
    }
    mounts
}

fn resources(choices: &mut Choices) -> Option<Value> {
    let (cpu, memory) = (choices.one(&["10m", "100m", "2"]), choices.one(&["32Mi", "200Mi", "1Gi"]));
    match choices.below(5) {
        0 => None,
        1 => Some(json!({"limits": {"cpu": cpu, "memory": memory}})),
        2 => Some(
            json!({"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}}),
        ),
        3 => Some(json!({"requests": {"cpu": cpu}})),
        _ => Some(json!({"requests": {"memory": memory}, "limits": {"memory": "1Gi"}})),
    }
}

/// What the pod as a whole sets.
fn pod_level(choices: &mut Choices, spec: &mut Value) {
    match choices.below(12) {
        0 => spec["shareProcessNamespace"] = json!(choices.chance(50)),
        1 => spec["hostPID"] = json!(true),
        2 => {
            spec["resources"] =
                json!({"requests": {"cpu": "8", "memory": "8Gi"}, "limits": {"cpu": "8", "memory": "8Gi"}});
        }
        3 => spec["resources"] = json!({"limits": {"cpu": "9"}}),
        4 => spec["nodeSelector"] = json!({"kubernetes.io/os": "windows"}),
        5 => {
            spec["affinity"] =
                affinity(choices.one(&["os", "arch"]), choices.one(&["windows", "linux", "arm64"]));
        }
        _ => {}
    }
    if choices.chance(30) {
        spec["restartPolicy"] = json!(choices.one(&["Always", "OnFailure", "Never"]));
    }
    match choices.below(10) {
        0 => spec["securityContext"] = json!({"runAsNonRoot": true}),
        1 => spec["securityContext"] = json!({"runAsNonRoot": true, "fsGroup": 7}),
        2 => spec["securityContext"] = json!({"runAsNonRoot": true, "runAsUser": choices.below(2)}),
        _ => {}
    }
}

/// The affinity to nodes with the value of a label.
fn affinity(label: &str, value: &str) -> Value {
    let expression = json!({"key": format!("kubernetes.io/{label}"), "operator": "In", "values": [value]});
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
}

fn labels(choices: &mut Choices) -> Value {
    let mut labels = Map::new();
    for (key, value) in [
        ("app", "app"),
        ("pod-template-hash", "abc12"),
        ("app.kubernetes.io/name", "shop"),
        ("app.kubernetes.io/version", "9"),
    ] {
        if choices.chance(50) {
            labels.insert(key.into(), value.into());
        }
    }
    Value::Object(labels)
}

fn owner(choices: &mut Choices) -> Value {
    let (version, kind, name) = choices.one(&[
        &("apps/v1", "ReplicaSet", "shop-abc12"),
        &("apps/v1", "StatefulSet", "shop"),
        &("batch/v1", "Job", "report-29000000"),
    ]);
    json!({"apiVersion": version, "kind": kind, "name": name, "uid": "6d1760ab-b09b-43e0-a9ad-a4fceaad36bb", "controller": true})
}

fn annotations(choices: &mut Choices, (regular, init): &(Vec<&str>, Vec<&str>)) -> Value {
    let all: Vec<&str> = regular.iter().chain(init).copied().collect();
    let languages = LANGUAGES.map(|language| language.name);
    let asked = if choices.chance(60) { vec![choices.one(&languages)] } else { choices.some(&languages, 30) };
    let mut annotations = Map::new();
    let mut set = |key: &str, value: String| {
        annotations.insert(format!("instrumentation.opentelemetry.io/{key}"), value.into())
    };
    for language in &asked {
        set(&format!("inject-{language}"), "true".into());
        if asked.len() > 1 && choices.chance(95) || choices.chance(50) {
            let list = if *language == "nginx" { "inject-nginx".to_owned() } else { (*language).to_owned() };
            let mut names = choices.some(&all, 60);
            if names.is_empty() {
                names.push(regular[0]);
            }
            set(&format!("{list}-container-names"), names.join(","));
        }
    }
    if choices.chance(60) {
        set("otel-go-auto-target-exe", "/app".into());
    }
    if choices.chance(30) {
        set("otel-python-platform", choices.one(&["musl", "glibc", "other"]).to_owned());
    }
    Value::Object(annotations)
}

fn instrumentation(choices: &mut Choices) -> Value {
    let mut spec = json!({"exporter": {"endpoint": "https://collector:4317"}, "propagators": ["tracecontext"], "sampler": {"type": "traceidratio", "argument": "0.5"}});
    if choices.chance(40) {
        spec["exporter"]["tls"] = json!({"secretName": choices.one(&["certs", "certs.v2"]), "configMapName": "ca", "ca_file": "ca.crt"});
    }
    if choices.chance(50) {
        spec["env"] = json!(distinct(choices));
    }
    if choices.chance(30) {
        spec["resource"] =
            json!({"addK8sUIDAttributes": true, "resourceAttributes": {"team": "a", "k8s.node.name": "own"}});
    }
    if choices.chance(30) {
        spec["initContainerSecurityContext"] = json!({"runAsUser": 7});
    }
    for (field, resources) in [
        ("java", "resources"),
        ("nodejs", "resourceRequirements"),
        ("go", "resourceRequirements"),
        ("nginx", "resourceRequirements"),
    ] {
        if choices.chance(40) {
            spec[field] = json!({"env": distinct(choices)});
            if let (Some(said), true) = (self::resources(choices), choices.chance(50)) {
                spec[field][resources] = said;
                spec[field][resources]["claims"] = json!([{"name": "gpu"}]);
            }
        }
    }
    if choices.chance(20) {
        spec["python"] = json!({"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}});
    }
    if choices.chance(40) {
        spec["java"]["extensions"] = json!([{"image": "extension:1", "dir": "/ext"}]);
    }
    json!({"apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation", "metadata": {"name": "default", "namespace": NAMESPACE}, "spec": spec})
}

/// Variables with names that stand once.
fn distinct(choices: &mut Choices) -> Vec<Value> {
    let mut list: Vec<Value> = Vec::new();
    for _ in 0..choices.below(4) {
        let variable = variable(choices);
        if list.iter().all(|known| known["name"] != variable["name"]) {
            list.push(variable);
        }
    }
    list
}
