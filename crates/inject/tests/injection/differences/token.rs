//! The token of the ServiceAccount in added containers.

use otel_webhook_testkit::{
    models::service_account::{TOKEN_PATH, mounted},
    objects::{asking, items},
    surroundings::{Injected, with},
};
use serde_json::{Value, json};

const SIDECAR: &str = "opentelemetry-auto-instrumentation";

/// The added containers of a pod that asks for everything.
const ADDED: [&str; 8] = [
    "opentelemetry-auto-instrumentation-java",
    "opentelemetry-auto-instrumentation-extension-0",
    "opentelemetry-auto-instrumentation-nodejs",
    "opentelemetry-auto-instrumentation-python",
    "opentelemetry-auto-instrumentation-dotnet",
    "otel-agent-source-container-clone",
    "otel-agent-attach-apache",
    SIDECAR,
];

/// A pod that asks for one of each kind of added container.
fn pod() -> Value {
    asking(&["java", "nodejs", "python", "dotnet", "apache-httpd", "go"], json!({}))
}

fn inject(pod: &Value) -> Injected {
    with(json!({"java": {"extensions": [{"image": "e:1", "dir": "/e"}]}})).inject(pod)
}

/// The last mount of a container, if it is where the token is.
fn last_mount<'i>(injected: &'i Injected, container: &str) -> Option<&'i Value> {
    let container = injected.container(container).expect("injected");
    items(&container["volumeMounts"]).last().filter(|mount| mount["mountPath"] == TOKEN_PATH)
}

#[track_caller]
fn assert_no_token(pod: &Value) {
    let injected = inject(pod);
    for name in ADDED.iter().filter(|name| !name.ends_with("clone")) {
        let container = injected.container(name).expect("injected");
        let mut paths = items(&container["volumeMounts"]).map(|mount| &mount["mountPath"]);
        assert!(!paths.any(|path| *path == TOKEN_PATH), "{name}: {container}");
    }
}

#[test]
fn d31_added_containers_have_the_token_at_once() {
    let before = mounted(&pod(), "x1y2z");
    let injected = inject(&before);
    let token = json!({"name": "kube-api-access-x1y2z", "readOnly": true, "mountPath": TOKEN_PATH});
    for name in ADDED.iter().filter(|name| !name.ends_with("clone")) {
        assert_eq!(last_mount(&injected, name), Some(&token), "{name}");
    }
    // It copies the application's mounts, and gets none a second time.
    let clone = injected.container("otel-agent-source-container-clone").expect("injected");
    assert_eq!(clone["volumeMounts"][0], token);
    assert_eq!(mounted(&injected.pod, "other"), injected.pod, "the plugin has nothing to add");
}

#[test]
fn d31_the_volume_is_the_first_of_its_prefix() {
    let mut before = mounted(&pod(), "first");
    let volumes = before["spec"]["volumes"].as_array_mut().expect("volumes");
    volumes.insert(0, json!({"name": "kube-api", "emptyDir": {}}));
    volumes.push(json!({"name": "kube-api-access-second", "emptyDir": {}}));
    before["spec"]["containers"][0]["volumeMounts"][0]["name"] = "kube-api-access-second".into();
    let injected = inject(&before);
    assert_eq!(last_mount(&injected, SIDECAR).expect("a token")["name"], "kube-api-access-first");
    assert_eq!(mounted(&injected.pod, "other"), injected.pod);
}

#[test]
fn d31_containers_may_mount_something_else_there() {
    let mut before = mounted(&pod(), "x");
    let own = json!([{"name": "own-token", "mountPath": TOKEN_PATH}]);
    let init = json!({"name": "setup", "image": "i:1", "volumeMounts": own});
    before["spec"]["initContainers"] = json!([init]);
    let injected = inject(&before);
    assert_eq!(last_mount(&injected, SIDECAR).expect("a token")["name"], "kube-api-access-x");
}

#[test]
fn d31_a_pod_without_the_token_stays_without() {
    let mut before = mounted(&pod(), "x");
    before["spec"]["automountServiceAccountToken"] = json!(false);
    assert_no_token(&before);
    assert_no_token(&pod());
}

/// The plugin has not seen such a pod yet, so it changes it in any case.
#[test]
fn d31_a_container_without_the_token_keeps_it_from_the_added_ones() {
    for list in ["containers", "initContainers"] {
        let mut before = mounted(&pod(), "x");
        let other =
            json!({"name": "mesh", "image": "m:1", "volumeMounts": [{"name": "d", "mountPath": "/d"}]});
        match &mut before["spec"][list] {
            Value::Array(containers) => containers.push(other),
            none => *none = json!([other]),
        }
        assert_no_token(&before);
    }
    let mut slash = mounted(&pod(), "x");
    slash["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] = json!(format!("{TOKEN_PATH}/"));
    assert_no_token(&slash);
}

#[test]
fn d31_no_other_volume_is_mounted() {
    let mut before = pod();
    before["spec"]["volumes"] = json!([{"name": "own-token", "projected": {"sources": []}}]);
    let own = json!([{"name": "own-token", "mountPath": TOKEN_PATH}]);
    before["spec"]["containers"][0]["volumeMounts"] = own;
    assert_no_token(&before);
}
