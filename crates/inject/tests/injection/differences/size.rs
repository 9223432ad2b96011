//! The operator makes pods that the API server or etcd does not take.

use otel_webhook_testkit::{
    objects::{asking, pod},
    surroundings::with,
};
use serde_json::{Value, json};

/// Variables of this size together.
fn variables(size: usize) -> Value {
    (0..size / 1000).map(|index| json!({"name": format!("V{index}"), "value": "v".repeat(1000)})).collect()
}

#[test]
fn d33_only_the_language_that_makes_the_pod_too_large_is_skipped() {
    let mut around = with(json!({"java": {"env": variables(10_000)}, "python": {"env": variables(300_000)}}));
    let ask = asking(&["java", "python", "sdk"], json!({}));
    let injected = around.inject(&ask);
    assert_eq!(injected.codes(), ["java/app: Injected", "python: PodTooLarge", "sdk/app: NothingToAdd"]);
    let said = injected.outcome.findings[1].to_string();
    assert_eq!(
        said,
        "python: the pod has 1Ki, and more than 256Ki would be added; the maximum is 4 times the pod, or 256Ki; \
         name fewer containers, or shorten the variables and resource attributes of the Instrumentation and of \
         the pod's annotations"
    );
    assert!(injected.env("app").iter().all(|one| one["name"] != "V299"));
    around.settings.max_pod_size = 8 * 1024;
    let injected = around.inject(&ask);
    assert_eq!(injected.codes(), ["java: PodTooLarge", "python: PodTooLarge", "sdk/app: Injected"]);
    let said = injected.outcome.findings[0].to_string();
    assert!(said.contains("the pod has 1Ki, and would have more than 8Ki (--max-pod-size); name"), "{said}");
}

#[test]
fn d33_a_pod_that_is_too_large_already_is_not_changed() {
    let mut around = with(json!({}));
    around.settings.stamp = true;
    around.settings.max_pod_size = 1000;
    let env = json!([{"name": "LONG", "value": "v".repeat(1000)}]);
    let injected = around.inject(&asking(&["java"], json!({"env": env})));
    assert_eq!(injected.codes(), ["java: PodTooLarge"]);
    assert!(injected.is_unchanged(), "{}", injected.outcome.patch);
}

#[test]
fn d33_the_size_of_the_injected_pod_stays_below_the_maximum() {
    let names: Vec<String> = (0..200).map(|index| format!("app-{index}")).collect();
    let containers: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "a:1"})).collect();
    let list = names.join(",");
    let ask = pod(&[("inject-java", "true"), ("container-names", &list)], json!({"containers": containers}));
    let mut around = with(json!({}));
    around.settings.stamp = true;
    let whole = around.inject(&ask).pod.to_string().len();
    let mut fits = Vec::new();
    for percent in [80, 90, 105, 120] {
        around.settings.max_pod_size = whole * percent / 100;
        let injected = around.inject(&ask);
        let size = injected.pod.to_string().len();
        assert!(size <= around.settings.max_pod_size, "{size} at {percent} %");
        fits.push(injected.codes().contains(&"java/app-0: Injected".to_owned()));
    }
    assert_eq!(fits, [false, false, true, true]);
}
