//! Two languages in one container, each with resource attributes of its own: the operator lists the variable twice,
//! and the kubelet uses the last one.

use otel_webhook_testkit::{
    objects::{asking, pod},
    surroundings::with,
};
use serde_json::{Value, json};

const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
const ORIGINAL: &str = "OTEL_INJECT_ORIGINAL_OTEL_RESOURCE_ATTRIBUTES";

fn own(value: &str) -> Value {
    json!({"env": [{"name": ATTRIBUTES, "value": value}]})
}

fn reference(optional: bool) -> Value {
    let key = json!({"name": "shop", "key": "attributes", "optional": optional});
    json!({"env": [{"name": ATTRIBUTES, "valueFrom": {"configMapKeyRef": key}}]})
}

#[test]
fn d13_the_attributes_of_a_second_language_are_added() {
    let around = with(json!({"nodejs": own("team=b,tier=2,k8s.pod.name=named")}));
    let injected = around.inject(&asking(&["java", "nodejs"], json!({})));
    let attribute = |key| injected.attribute("app", key);
    assert_eq!((attribute("team"), attribute("tier")), (Some("b"), Some("2")));
    // The derived one of the first language gives way, as it does in a container of its own.
    assert_eq!(attribute("k8s.pod.name"), Some("named"));
    assert_eq!(attribute("k8s.container.name"), Some("app"));
    let value = injected.value("app", ATTRIBUTES).expect("a value");
    assert_eq!(value.matches("k8s.pod.name=").count(), 1, "{value}");
    let last = injected.env("app").len() - 1;
    assert_eq!(injected.position("app", ATTRIBUTES), Some(last));
}

#[test]
fn d13_of_two_languages_the_first_one_sets_an_attribute() {
    let around =
        with(json!({"java": own("team=a"), "nodejs": own("team=b,tier=2"), "python": own("tier=3")}));
    let injected = around.inject(&asking(&["java", "nodejs", "python"], json!({})));
    assert_eq!(injected.attribute("app", "team"), Some("a"));
    assert_eq!(injected.attribute("app", "tier"), Some("2"));
}

#[test]
fn d13_the_containers_own_attributes_override_those_of_every_language() {
    let around = with(json!({"java": own("team=a"), "nodejs": own("team=b,tier=2")}));
    let container = json!({"env": [{"name": ATTRIBUTES, "value": "mine=1"}]});
    let injected = around.inject(&asking(&["java", "nodejs"], container));
    assert_eq!(injected.attribute("app", "mine"), Some("1"));
    assert_eq!((injected.attribute("app", "team"), injected.attribute("app", "tier")), (None, None));
}

#[test]
fn d13_the_reference_of_a_second_language_is_added_last() {
    let around = with(json!({"java": own("team=a"), "nodejs": reference(false), "python": own("tier=3")}));
    let injected = around.inject(&asking(&["java", "nodejs", "python"], json!({})));
    let value = injected.value("app", ATTRIBUTES).expect("a value");
    assert!(value.ends_with(&format!(",$({ORIGINAL})")), "{value}");
    assert_eq!(
        (injected.attribute("app", "team"), injected.attribute("app", "tier")),
        (Some("a"), Some("3"))
    );
    let original = injected.position("app", ORIGINAL).expect("the reference");
    assert!(original < injected.position("app", ATTRIBUTES).expect("the variable"));
    let from = &injected.env("app")[original]["valueFrom"];
    assert_eq!(from["configMapKeyRef"]["name"], "shop");
}

#[test]
fn d13_a_second_language_with_an_optional_reference_is_skipped() {
    let around = with(json!({"java": own("team=a"), "nodejs": reference(true)}));
    let injected = around.inject(&asking(&["java", "nodejs"], json!({})));
    assert_eq!(injected.codes(), ["java/app: Injected", "nodejs/app: OptionalReference"]);
    assert_eq!(injected.attribute("app", "team"), Some("a"));
}

#[test]
fn d13_a_second_language_with_nothing_of_its_own_adds_nothing() {
    let mut around = with(own("team=a"));
    around.settings.stamp = true;
    let lists = [("inject-java", "true"), ("inject-sdk", "true"), ("container-names", "app")];
    let containers = json!({"containers": [{"name": "app", "image": "a:1"}]});
    let injected = around.inject(&pod(&lists, containers));
    assert_eq!(injected.codes(), ["java/app: Injected", "sdk/app: NothingToAdd"]);
    assert_eq!(injected.attribute("app", "team"), Some("a"));
}
