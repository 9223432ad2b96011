//! How often the API server reviews a pod with `reinvocationPolicy: IfNeeded` (D31), and what a second review changes.

use std::collections::BTreeSet;

use otel_webhook_inject::language::LANGUAGES;
use otel_webhook_testkit::{
    cluster::created::{AGENT, Created, VARIABLES, name},
    models::service_account::{TOKEN_PATH, TOKEN_VOLUME, mounts_token},
    objects::items,
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::{Cluster, asking, java};
use crate::sidecar::{SidecarWebhook, has_sidecar};

/// An account with pods that get no token.
const TOKENLESS: &str = "tokenless";

/// An agent of the Instrumentation.
const PHP: &str = "php";

/// Each language, in pods with the token and without it.
pub fn once(cluster: &Cluster) {
    let namespace = "reviewed-once";
    prepare(cluster, namespace);
    let _all = cluster.webhook.restart_with(&["--languages", "all"]);
    for language in LANGUAGES.map(|language| language.name) {
        for (way, spec, has_token) in [
            ("default", json!({}), true),
            ("asked-for", json!({"automountServiceAccountToken": true}), true),
            ("not-by-pod", json!({"automountServiceAccountToken": false}), false),
            ("not-by-account", json!({"serviceAccountName": TOKENLESS}), false),
        ] {
            let what = format!("{language}-{way}");
            let (pod, reviews) = reviewed(cluster, namespace, &with_more(&what, language, &spec));
            assert!(pod.status().contains("Injected"), "{what}: {}", pod.pod);
            assert_eq!(reviews, 1, "{what}: {}", pod.pod["spec"]);
            for container in containers(&pod.pod) {
                assert_eq!(mounts_token(container), has_token, "{what}: {container}");
            }
        }
    }
}

/// LimitRanger runs again after injection. It changes the pod only if an added container has no value that it
/// defaults: init containers have all of them, unless they have exactly what the Instrumentation sets.
pub fn with_limits(cluster: &Cluster) {
    let namespace = "reviewed-with-limits";
    prepare(cluster, namespace);
    for (resource, amount) in [("memory", "100Mi"), ("ephemeral-storage", "1Gi")] {
        let mut item = json!({"type": "Container", "default": {"cpu": "300m", "memory": "300Mi"}});
        item["defaultRequest"] = json!({"cpu": "30m", resource: amount});
        cluster.apply(&json!({"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": [item]},
            "metadata": {"name": "defaults", "namespace": namespace}}));
        wait_for_limits(cluster, namespace, resource);
        for way in ["neutral", "exact"] {
            // It lists LimitRanges when it starts.
            let _all = cluster.webhook.restart_with(&["--languages", "all", "--init-resources", way]);
            for language in LANGUAGES.map(|language| language.name) {
                let what = format!("{language}-{way}-{resource}");
                let (pod, reviews) = reviewed(cluster, namespace, &with_more(&what, language, &json!({})));
                assert!(pod.status().contains("Injected"), "{what}: {}", pod.pod);
                // No Instrumentation sets ephemeral storage.
                let is_set =
                    resource == "memory" || language == "sdk" || way == "neutral" && language != "go";
                assert_eq!(reviews, if is_set { 1 } else { 2 }, "{what}: {}", pod.pod);
                let set = &pod.pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"];
                let set = set.as_str().expect("LimitRanger's annotation");
                assert_eq!(set.contains("container app"), is_set, "{what}: {set}");
            }
        }
    }
}

/// Waits until the API server has a LimitRange with a default of the resource. It learns of it by a watch.
fn wait_for_limits(cluster: &Cluster, namespace: &str, resource: &str) {
    until("LimitRanger has the LimitRange", || {
        let pod = cluster.dry_run(namespace, &asking("probe", &[]));
        pod.container("app")["resources"]["requests"][resource].is_string().then_some(())
    });
}

/// Where no container of the pod has the token, the plugin makes a volume for the added ones.
pub fn twice(cluster: &Cluster) {
    let namespace = "reviewed-twice";
    prepare(cluster, namespace);
    let own = json!([{"name": "own-token", "mountPath": TOKEN_PATH}]);
    let spec = json!({"volumes": [{"name": "own-token", "emptyDir": {}}]});
    for (language, expected) in [("java", 2), ("sdk", 1)] {
        let mut pod = asking(language, &[(&format!("inject-{language}"), "true")]);
        extend(&mut pod["spec"], &spec);
        pod["spec"]["containers"][0]["volumeMounts"] = own.clone();
        let (pod, reviews) = reviewed(cluster, namespace, &pod);
        assert_eq!(reviews, expected, "{language}: {}", pod.pod["spec"]);
        for init in items(&pod.pod["spec"]["initContainers"]) {
            let token = items(&init["volumeMounts"]).find(|mount| mount["mountPath"] == TOKEN_PATH);
            let volume = token.map(name).unwrap_or_default();
            assert!(volume.starts_with(TOKEN_VOLUME), "the plugin's own volume: {init}");
        }
    }
}

fn prepare(cluster: &Cluster, namespace: &str) {
    cluster.instrumented_namespace(namespace);
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": false,
        "metadata": {"name": TOKENLESS, "namespace": namespace}}));
    let extensions = json!([{"image": "registry.example.com/e:1", "dir": "/e"}]);
    let agents = json!([{"name": PHP, "image": "registry.example.com/a:1", "directory": "/a"}]);
    cluster.instrumentation(
        namespace,
        "default",
        &json!({"java": {"extensions": extensions}, "agents": agents}),
    );
    let has_extension = |pod: &Created| pod.init_containers().len() == 2;
    cluster.create_when("the extension is known", namespace, &java("first"), has_extension);
}

/// A pod with containers of every kind, of which `app` asks for a language.
fn with_more(name: &str, language: &str, spec: &Value) -> Value {
    let list = if language == "nginx" { "inject-nginx".to_owned() } else { language.to_owned() };
    let asks = [
        (&*format!("inject-{language}"), if language == "agent" { PHP } else { "true" }),
        (&*format!("{list}-container-names"), "app"),
        ("otel-go-auto-target-exe", "/app"),
    ];
    let mut pod = asking(name, &asks);
    extend(&mut pod["spec"], spec);
    let image = "registry.example.com/more:1";
    let init = json!([{"name": "setup", "image": image}, {"name": "mesh", "image": image, "restartPolicy": "Always"}]);
    pod["spec"]["initContainers"] = init;
    let more =
        json!({"name": "more", "image": image, "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
    pod["spec"]["containers"].as_array_mut().expect("containers").push(more);
    pod["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    pod
}

fn extend(spec: &mut Value, more: &Value) {
    let more = more.as_object().expect("an object").clone();
    spec.as_object_mut().expect("a specification").extend(more);
}

/// A pod that is created, and how often our webhook was called for it.
fn reviewed(cluster: &Cluster, namespace: &str, pod: &Value) -> (Created, u64) {
    let before = cluster.webhook.pod_reviews();
    let pod = cluster.create(namespace, pod);
    (pod, cluster.webhook.pod_reviews() - before)
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    items(&pod["spec"]["initContainers"]).chain(items(&pod["spec"]["containers"]))
}

/// Another webhook adds a sidecar, so that ours is called a second time and finds the pod injected.
pub fn after_a_sidecar(cluster: &Cluster) {
    let namespace = "sidecar-java";
    cluster.instrumented_namespace(namespace);
    let _sidecars = SidecarWebhook::start(cluster, namespace);
    let counted =
        || ["Injected", "AlreadyInjected"].map(|outcome| cluster.webhook.decisions("java", outcome));
    let before = counted();

    let pod = cluster.create(namespace, &java("app"));

    assert_eq!(counted(), before.map(|count| count + 1));
    assert!(has_sidecar(&pod.pod) && pod.variables("sidecar").is_empty(), "{}", pod.pod);
    assert!(pod.is_injected() && pod.warnings.is_empty(), "{}: {}", pod.warnings, pod.pod);
    assert_eq!(pod.init_containers(), [AGENT]);
    let mounts: Vec<_> = items(&pod.container("app")["volumeMounts"]).map(name).collect();
    assert_eq!(mounts.iter().filter(|mount| **mount == AGENT).count(), 1, "{mounts:?}");
    let variables = pod.variables("app");
    let once: BTreeSet<_> = variables.iter().collect();
    assert_eq!(once.len(), variables.len(), "a variable stands twice: {variables:?}");
    assert!(VARIABLES.iter().all(|variable| variables.contains(variable)), "{variables:?}");
    let options = pod.variable("app", "JAVA_TOOL_OPTIONS");
    assert_eq!(options.matches("-javaagent:").count(), 1, "{options}");
}
