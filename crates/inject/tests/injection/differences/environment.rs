//! Variables and resource attributes.

use otel_webhook_testkit::{
    objects::{asking, instrumentation, pod},
    surroundings::{Injected, Surroundings, with},
};
use serde_json::{Value, json};

const SIDECAR: &str = "opentelemetry-auto-instrumentation";
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// Every variable that is extended, with the language that does.
const EXTENDED: [(&str, &str); 6] = [
    ("java", "JAVA_TOOL_OPTIONS"),
    ("nodejs", "NODE_OPTIONS"),
    ("python", "PYTHONPATH"),
    ("dotnet", "DOTNET_STARTUP_HOOKS"),
    ("dotnet", "DOTNET_SHARED_STORE"),
    ("nginx", "LD_LIBRARY_PATH"),
];

fn reference(optional: bool) -> Value {
    json!({"configMapKeyRef": {"name": "m", "key": "k", "optional": optional}})
}

fn count(injected: &Injected, container: &str, variable: &str) -> usize {
    injected.env(container).iter().filter(|one| one["name"] == variable).count()
}

/// The original under its new name, the variable behind it, and a reference from one to the other.
fn assert_kept(injected: &Injected, variable: &str) {
    let original = format!("OTEL_INJECT_ORIGINAL_{variable}");
    let at = injected.position("app", &original).unwrap_or_else(|| panic!("{original} is not there"));
    assert_eq!(injected.env("app")[at]["valueFrom"], reference(false), "{variable}");
    assert_eq!(injected.position("app", variable), Some(at + 1));
    let value = injected.value("app", variable).expect("a value");
    assert!(value.contains(&format!("$({original})")), "{variable}={value}");
}

#[test]
fn d1_a_variable_from_elsewhere_keeps_its_value() {
    for (language, variable) in EXTENDED.into_iter().chain([("dotnet", "DOTNET_ADDITIONAL_DEPS")]) {
        let later = json!({"name": "LATER", "value": format!("$({variable})")});
        let own = json!({"env": [{"name": variable, "valueFrom": reference(false)}, later]});
        let injected = with(json!({})).inject(&asking(&[language], own));
        assert_eq!(injected.codes(), [format!("{language}/app: Injected")]);
        assert_kept(&injected, variable);
        assert!(injected.position("app", variable) < injected.position("app", "LATER"));
    }
}

#[test]
fn d1_an_optional_reference_leaves_the_container_out() {
    for (language, variable) in EXTENDED {
        let own = json!({"env": [{"name": variable, "valueFrom": reference(true)}]});
        let injected = with(json!({})).inject(&asking(&[language], own));
        assert_eq!(injected.codes(), [format!("{language}/app: OptionalReference")]);
        assert!(injected.is_unchanged());
    }
}

#[test]
fn d6_attributes_from_elsewhere_go_last() {
    let own = json!({"env": [{"name": ATTRIBUTES, "valueFrom": reference(false)}]});
    let injected = with(json!({})).inject(&asking(&["sdk"], own));
    let value = injected.value("app", ATTRIBUTES).expect("a value");
    assert!(value.ends_with(",$(OTEL_INJECT_ORIGINAL_OTEL_RESOURCE_ATTRIBUTES)"), "{value}");
    assert!(
        injected.env("app").iter().all(|one| one.get("value").is_none() || one.get("valueFrom").is_none())
    );
}

#[test]
fn d6_they_stay_last_when_another_language_adds_to_them() {
    let team = json!({"resource": {"resourceAttributes": {"team": "b"}}});
    let around = Surroundings::new([instrumentation("one", json!({})), instrumentation("two", team)]);
    let own = json!({"env": [{"name": ATTRIBUTES, "valueFrom": reference(false)}]});
    let mut pod = asking(&["java", "python"], own);
    for (language, name) in [("java", "one"), ("python", "two")] {
        pod["metadata"]["annotations"][format!("instrumentation.opentelemetry.io/inject-{language}")] =
            name.into();
    }
    let injected = around.inject(&pod);
    let value = injected.value("app", ATTRIBUTES).expect("a value");
    assert!(value.ends_with(",team=b,$(OTEL_INJECT_ORIGINAL_OTEL_RESOURCE_ATTRIBUTES)"), "{value}");
}

#[test]
fn d7_a_value_with_an_equals_sign_is_seen() {
    let own = json!({"env": [{"name": ATTRIBUTES, "value": "service.namespace=a=b"}]});
    let injected = with(json!({})).inject(&asking(&["sdk"], own));
    let value = injected.value("app", ATTRIBUTES).expect("a value");
    assert_eq!(value.matches("service.namespace=").count(), 1, "{value}");
}

#[test]
fn d12_a_key_that_is_there_is_not_added_again() {
    let spec = json!({
        "resource": {"addK8sUIDAttributes": true},
        "go": {"env": [{"name": ATTRIBUTES, "value": "k8s.pod.name=p,k8s.container.name=c"}]},
    });
    let own = "k8s.pod.name=p,k8s.node.name=n,k8s.pod.uid=u";
    let own = json!({"env": [{"name": ATTRIBUTES, "value": own}]});
    let app = with(spec.clone()).inject(&asking(&["sdk"], own));
    let sidecar = with(spec).inject(&asking(&["go"], json!({})));
    let values = [app.value("app", ATTRIBUTES), sidecar.value(SIDECAR, ATTRIBUTES)];
    for value in values.map(Option::unwrap) {
        for key in ["k8s.pod.name=", "k8s.node.name=", "k8s.pod.uid=", "k8s.container.name="] {
            assert_eq!(value.matches(key).count(), 1, "{key} in {value}");
        }
    }
}

#[test]
fn d12_the_applications_attributes_take_none_from_the_sidecar() {
    let spec = json!({"resource": {"addK8sUIDAttributes": true, "resourceAttributes": {"team": "b"}}});
    let own = "k8s.pod.name=p,k8s.pod.uid=u,k8s.node.name=n,service.version=7,team=a";
    let own = json!({"env": [{"name": ATTRIBUTES, "value": own}]});
    let beside = with(spec.clone()).inject(&asking(&["go"], own));
    let alone = with(spec).inject(&asking(&["go"], json!({})));
    assert_eq!(beside.container(SIDECAR), alone.container(SIDECAR));
    for (key, value) in [
        ("k8s.pod.name", "$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME)"),
        ("k8s.pod.uid", "$(OTEL_RESOURCE_ATTRIBUTES_POD_UID)"),
        ("k8s.node.name", "$(OTEL_RESOURCE_ATTRIBUTES_NODE_NAME)"),
        ("service.version", "1"),
        ("team", "b"),
    ] {
        assert_eq!(beside.attribute(SIDECAR, key), Some(value));
    }
}

/// What refers to an address, and stands before the variables of an Instrumentation.
fn refers_to_the_node() -> Value {
    json!({"env": [{"name": "COLLECTOR", "value": "http://$(OTEL_NODE_IP):4318"}]})
}

#[test]
fn d13_the_addresses_stand_at_the_head_whoever_gives_their_values() {
    let given = |values: &[(&str, &str)]| {
        let first = std::iter::once(json!({"name": "FIRST", "value": "1"}));
        let all = values.iter().map(|(name, value)| json!({"name": name, "value": value}));
        Value::Array(first.chain(all).collect())
    };
    let pod_then_node = given(&[("OTEL_POD_IP", "p"), ("OTEL_NODE_IP", "n")]);
    for (spec, node, pod) in [
        (json!({"env": pod_then_node}), Some("n"), Some("p")),
        (json!({"python": {"env": pod_then_node}}), Some("n"), Some("p")),
        (json!({"env": given(&[("OTEL_NODE_IP", "n")])}), Some("n"), None),
        (json!({"python": {"env": given(&[("OTEL_POD_IP", "p")])}}), None, Some("p")),
        (
            json!({"env": pod_then_node, "python": {"env": given(&[("OTEL_POD_IP", "of python")])}}),
            Some("n"),
            Some("of python"),
        ),
    ] {
        for languages in [&["python"][..], &["nodejs", "python"], &["python", "sdk"]] {
            let injected = with(spec.clone()).inject(&asking(languages, refers_to_the_node()));
            let names: Vec<_> = injected.env("app").iter().map(|one| one["name"].clone()).collect();
            assert_eq!(names[..3], ["OTEL_NODE_IP", "OTEL_POD_IP", "COLLECTOR"], "{languages:?} {spec}");
            let values = ["OTEL_NODE_IP", "OTEL_POD_IP"].map(|name| injected.value("app", name));
            assert_eq!(values, [node, pod], "{languages:?} {spec}");
        }
    }
}

#[test]
fn d13_the_addresses_stand_at_the_head_of_the_sidecar() {
    for field in ["env", "go"] {
        let list = json!([{"name": "FIRST", "value": "1"}, {"name": "OTEL_NODE_IP", "value": "n"}]);
        let spec = if field == "go" { json!({"go": {"env": list}}) } else { json!({"env": list}) };
        let injected = with(spec).inject(&asking(&["go"], json!({})));
        let names: Vec<_> = injected.env(SIDECAR).iter().map(|one| one["name"].clone()).collect();
        assert_eq!(names[..2], ["OTEL_NODE_IP", "OTEL_POD_IP"], "{field}");
        assert_eq!(injected.value(SIDECAR, "OTEL_NODE_IP"), Some("n"));
    }
}

#[test]
fn d13_an_address_of_the_containers_own_stays_where_it_is() {
    let own = json!([{"name": "A", "value": "a"}, {"name": "OTEL_NODE_IP", "value": "own"}]);
    let spec =
        json!({"env": [{"name": "OTEL_NODE_IP", "value": "n"}, {"name": "OTEL_POD_IP", "value": "p"}]});
    let injected = with(spec).inject(&asking(&["nodejs", "python"], json!({"env": own})));
    let names: Vec<_> = injected.env("app").iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names[..3], ["OTEL_POD_IP", "A", "OTEL_NODE_IP"]);
    assert_eq!(injected.value("app", "OTEL_NODE_IP"), Some("own"));
}

#[test]
fn d13_each_variable_stands_once() {
    let spec = json!({"env": [{"name": "OTEL_NODE_IP", "value": "mine"}]});
    let own = json!({"env": [{"name": "OTEL_RESOURCE_ATTRIBUTES_POD_NAME", "value": "own"}]});
    let injected = with(spec).inject(&asking(&["nodejs", "python", "sdk"], own));
    assert_eq!(injected.value("app", "OTEL_NODE_IP"), Some("mine"));
    assert_eq!(injected.value("app", "OTEL_RESOURCE_ATTRIBUTES_POD_NAME"), Some("own"));
    for variable in injected.env("app") {
        let name = variable["name"].as_str().expect("a name");
        assert_eq!(count(&injected, "app", name), 1, "{name}");
    }
    assert_eq!(injected.env("app").last().expect("variables")["name"], ATTRIBUTES);
}

#[test]
fn d13_the_instrumentation_comes_before_what_another_language_derives() {
    let set = |name: &str, value: &str| json!({"name": name, "value": value});
    let spec = json!({
        "env": [set("SHARED", "common")],
        "python": {"env": [
            set("OTEL_METRICS_EXPORTER", "none"), set("OTEL_SERVICE_NAME", "said"), set("OTEL_NODE_IP", "mine"),
            set("SHARED", "python"), set("NODE_OPTIONS", "--not-these"),
        ]},
    });
    let own = json!({"env": [set("OTEL_SERVICE_NAME", "own")]});
    let injected = with(spec).inject(&asking(&["nodejs", "python"], own));
    for (name, value) in [
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_SERVICE_NAME", "own"),
        ("OTEL_NODE_IP", "mine"),
        ("SHARED", "python"),
    ] {
        assert_eq!(injected.value("app", name), Some(value), "{name}");
        assert_eq!(count(&injected, "app", name), 1, "{name}");
    }
    let options = injected.value("app", "NODE_OPTIONS").expect("a value");
    assert!(options.contains("--require"), "{options}");
}

#[test]
fn d1_an_optional_reference_that_replaces_a_common_value_is_seen() {
    let optional = json!([{"name": "PYTHONPATH", "valueFrom": reference(true)}]);
    let spec = json!({"env": [{"name": "PYTHONPATH", "value": "/common"}], "python": {"env": optional}});
    let injected = with(spec).inject(&asking(&["nodejs", "python"], json!({})));
    assert_eq!(injected.codes(), ["nodejs/app: Injected", "python/app: OptionalReference"]);
    assert_eq!(injected.value("app", "PYTHONPATH"), Some("/common"));
}

#[test]
fn dotnet_is_not_left_out_for_a_home_of_the_common_variables() {
    let spec = json!({"env": [{"name": "OTEL_DOTNET_AUTO_HOME", "value": "/h"}]});
    let injected = with(spec).inject(&asking(&["nodejs", "dotnet"], json!({})));
    assert_eq!(injected.codes(), ["nodejs/app: Injected", "dotnet/app: Injected"]);
}

#[test]
fn d14_what_the_instrumentation_sets_is_extended_as_well() {
    for (language, variable) in EXTENDED {
        let list = json!([{"name": "A", "value": "a"}, {"name": variable, "valueFrom": reference(false)}]);
        for spec in [json!({"env": list}), json!({language: {"env": list}})] {
            let injected = with(spec).inject(&asking(&[language], json!({})));
            assert_kept(&injected, variable);
            assert!(injected.position("app", "A") < injected.position("app", variable));
        }
    }
}

#[test]
fn d14_search_paths_of_the_common_variables_count() {
    for (language, variable) in [("python", "PYTHONPATH"), ("nginx", "LD_LIBRARY_PATH")] {
        let spec = json!({"env": [{"name": "A", "value": "/a"}, {"name": variable, "value": "$(A)/lib"}]});
        let injected = with(spec).inject(&asking(&[language], json!({})));
        let value = injected.value("app", variable).expect("a value");
        assert!(value.contains("$(A)/lib:") || value.starts_with("$(A)/lib:"), "{value}");
        assert!(injected.position("app", "A") < injected.position("app", variable));
    }
}

#[test]
fn d16_only_a_key_with_a_value_counts() {
    let attributes = |own: &str| {
        let own = json!({"env": [{"name": ATTRIBUTES, "value": own}]});
        let injected = with(json!({})).inject(&asking(&["sdk"], own));
        injected.value("app", ATTRIBUTES).expect("a value").to_owned()
    };
    assert!(attributes("").starts_with("k8s.container.name=app,"));
    assert!(attributes("note=service.version").ends_with(",service.version=1"));
}

#[test]
fn d26_the_last_of_a_repeated_variable_is_extended() {
    let twice = json!([{"name": "NODE_OPTIONS", "value": "--a"}, {"name": "NODE_OPTIONS", "value": "--b"}]);
    let injected = with(json!({})).inject(&asking(&["nodejs"], json!({"env": twice})));
    let values: Vec<_> =
        injected.env("app").into_iter().filter(|one| one["name"] == "NODE_OPTIONS").collect();
    assert_eq!(values[0]["value"], "--a");
    assert!(values[1]["value"].as_str().expect("a value").starts_with("--b --require "));
    assert_eq!(values.len(), 2);
}

const NODE_NAME: &str = "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME";

#[test]
fn d29_a_container_that_gets_variables_alone_has_the_one_that_the_operator_knows() {
    let own = json!({"env": [{"name": ATTRIBUTES, "value": "k8s.node.name=n"}]});
    let resource = json!({"resource": {"resourceAttributes": {"k8s.node.name": "n"}}});
    let mut bound = asking(&["sdk"], json!({}));
    bound["spec"]["nodeName"] = json!("n");
    for (spec, before) in [
        (json!({}), asking(&["sdk"], own.clone())),
        (resource, asking(&["sdk"], json!({}))),
        (json!({}), bound),
    ] {
        let injected = with(spec).inject(&before);
        let at = injected.position("app", NODE_NAME).expect("the variable");
        assert_eq!(injected.env("app")[at]["valueFrom"], json!({"fieldRef": {"fieldPath": "spec.nodeName"}}));
        assert_eq!(injected.attribute("app", "k8s.node.name"), Some("n"));
        assert!(Some(at) < injected.position("app", ATTRIBUTES));
    }
    let java = with(json!({})).inject(&asking(&["java"], own));
    assert_eq!(java.position("app", NODE_NAME), None, "its init container marks the pod");
}

#[test]
fn d29_init_containers_go_without() {
    let own = json!({"name": ATTRIBUTES, "value": "k8s.node.name=n"});
    let spec = json!({
        "containers": [{"name": "app", "image": "app:1", "env": [own]}],
        "initContainers": [{"name": "setup", "image": "setup:1", "env": [own]}],
    });
    let asks = [("inject-sdk", "true"), ("container-names", "setup,app")];
    let injected = with(json!({})).inject(&pod(&asks, spec));
    assert_eq!(injected.codes(), ["sdk/setup: Injected", "sdk/app: Injected"]);
    assert_eq!(injected.position("setup", NODE_NAME), None);
    assert!(injected.position("app", NODE_NAME).is_some());
}

#[test]
fn d2_nothing_is_added_where_every_target_is_left_out() {
    let home = json!({"env": [{"name": "OTEL_DOTNET_AUTO_HOME", "value": "/h"}]});
    let injected = with(json!({})).inject(&asking(&["dotnet"], home));
    assert_eq!(injected.codes(), ["dotnet/app: AutoHomeSet"]);
    assert!(injected.is_unchanged());
    let spec = json!({"containers": [{"name": "app", "image": "app:1"}]});
    let asks = [("inject-python", "true"), ("otel-python-platform", "MUSL")];
    let injected = with(json!({})).inject(&pod(&asks, spec));
    assert_eq!(injected.codes(), ["python: PlatformUnknown"]);
    assert!(injected.is_unchanged());
}
