//! Sidecars in pods that end.

use otel_webhook_testkit::{
    models::amounts::effective,
    objects::{asking, instrumentation, limit_range, quota},
    surroundings::{Injected, Surroundings, with},
};
use serde_json::{Value, json};

const SIDECAR: &str = "opentelemetry-auto-instrumentation";

/// A pod of a Job with an init container, which opts in to these languages.
fn pod(languages: &[&str], policy: &str) -> Value {
    let mut pod = asking(languages, json!({"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}));
    pod["spec"]["restartPolicy"] = json!(policy);
    let resources = json!({"requests": {"cpu": "2", "memory": "64Mi"}});
    pod["spec"]["initContainers"] = json!([{"name": "setup", "image": "s:1", "resources": resources}]);
    pod
}

fn injected(languages: &[&str], policy: &str) -> Injected {
    let injected = with(json!({})).inject(&pod(languages, policy));
    assert!(injected.codes().iter().all(|code| code.ends_with(": Injected")), "{:?}", injected.codes());
    injected
}

#[test]
fn d42_the_pod_needs_no_more_than_with_a_container() {
    let [as_container, as_native] =
        ["Always", "Never"].map(|policy| effective(&injected(&["go"], policy).pod));
    assert_eq!(as_container, as_native);
    // The step of `setup` needs more CPU than what runs after it.
    assert_eq!(as_native.0["cpu"], 2_000);
}

#[test]
fn d42_the_namespace_has_to_accept_the_sidecar_as_an_addition() {
    let mut bounded = pod(&["go"], "Never");
    let max = json!({"type": "Pod", "max": {"memory": "1Gi"}});
    bounded["spec"]["containers"][0]["resources"]["limits"] = json!({"memory": "1Gi"});
    bounded["spec"]["initContainers"][0]["resources"]["limits"] = json!({"memory": "1Gi"});
    for bound in [limit_range(&max), quota(&json!({"limits.memory": "1Gi"}))] {
        let around = Surroundings::new([instrumentation("inst", json!({})), bound]);
        assert_eq!(around.inject(&bounded).codes(), ["go/app: ResourcesRejected"]);
    }
    let requests = |hard: &str| {
        let around =
            Surroundings::new([instrumentation("inst", json!({})), quota(&json!({"requests.memory": hard}))]);
        let injected = around.inject(&bounded);
        injected.container(SIDECAR).expect("the sidecar")["resources"]["requests"]["memory"].clone()
    };
    assert_eq!((requests("2Gi"), requests("1040Mi")), (json!("64Mi"), json!("16Mi")));
}
