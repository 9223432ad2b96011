//! The annotation `otel-webhook/paused`.

use otel_webhook_inject::{
    catalogue::Catalogue,
    pause::Pause,
    reason::{ObjectName, Reason},
};
use otel_webhook_testkit::{
    known::Known,
    objects::{NAMESPACE, asking, instrumentation, pod},
    surroundings::{Injected, Surroundings},
};
use serde_json::{Value, json};

/// The namespace of the release.
const RELEASE: &str = "otel-webhook";

fn paused(mut object: Value, value: &str) -> Value {
    object["metadata"]["annotations"]["otel-webhook/paused"] = json!(value);
    object
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn selecting(name: &str, priority: i32) -> Value {
    instrumentation(name, json!({"selector": {}, "priority": priority, "inject": ["java"]}))
}

/// What is known of the cluster.
fn catalogue(objects: &[Value]) -> Catalogue {
    let known = Known::of(objects, &Surroundings::new([]).images);
    Catalogue { release: Some(RELEASE.into()), ..known.catalogue }
}

fn inject(catalogue: &Catalogue, pod: &Value) -> Injected {
    let around = Surroundings::new([]);
    around.inject_knowing(pod, catalogue, &Known::default().owners)
}

fn java() -> Value {
    asking(&["java"], json!({}))
}

/// A pod that opts in with this value.
fn naming(value: &str) -> Value {
    pod(&[("inject-java", value)], json!({"containers": [{"name": "app", "image": "a"}]}))
}

/// The one reason of a pod that is not changed.
fn reason(injected: &Injected) -> String {
    assert!(injected.is_unchanged(), "{:?}", injected.codes());
    let [finding] = &injected.outcome.findings[..] else { panic!("{:?}", injected.codes()) };
    finding.reason.to_string()
}

#[test]
fn each_place_pauses_and_is_named_with_the_command_that_resumes() {
    let (shop, release, inst) =
        (namespace(NAMESPACE), namespace(RELEASE), instrumentation("inst", json!({})));
    let none = catalogue(&[shop.clone(), release.clone(), inst.clone()]);
    assert_eq!(inject(&none, &java()).codes(), ["java/app: Injected"]);
    assert_eq!(none.pauses(), []);
    let lease = ObjectName { namespace: RELEASE.into(), name: "leader".into() };
    for (catalogue, by, target) in [
        (
            catalogue(&[shop.clone(), release.clone(), paused(inst.clone(), "true")]),
            "Instrumentation shop/inst",
            "instrumentations.opentelemetry.io inst -n shop",
        ),
        (
            catalogue(&[paused(shop.clone(), "true"), release.clone(), inst.clone()]),
            "Namespace shop",
            "namespace shop",
        ),
        (
            catalogue(&[shop.clone(), paused(release.clone(), "true"), inst.clone()]),
            "Namespace otel-webhook",
            "namespace otel-webhook",
        ),
        (
            Catalogue { paused_lease: Some(lease), ..none.clone() },
            "Lease otel-webhook/leader",
            "leases.coordination.k8s.io leader -n otel-webhook",
        ),
    ] {
        let expected = format!(
            "injection is paused by the annotation otel-webhook/paused of {by}; to resume: kubectl annotate {target} \
             otel-webhook/paused-"
        );
        assert_eq!(reason(&inject(&catalogue, &java())), expected);
        let pauses: Vec<_> = catalogue.pauses().iter().map(ToString::to_string).collect();
        assert_eq!(pauses, [by]);
    }
}

#[test]
fn only_true_pauses_in_any_case() {
    for (value, code) in [
        ("TRUE", "java: Paused"),
        ("True", "java: Paused"),
        ("false", "java/app: Injected"),
        ("", "java/app: Injected"),
        ("yes", "java/app: Injected"),
    ] {
        for objects in [
            [namespace(NAMESPACE), paused(instrumentation("inst", json!({})), value)],
            [paused(namespace(NAMESPACE), value), instrumentation("inst", json!({}))],
        ] {
            assert_eq!(inject(&catalogue(&objects), &java()).codes(), [code], "{value:?}");
        }
    }
}

#[test]
fn a_pod_of_another_namespace_or_another_instrumentation_is_injected() {
    let other = catalogue(&[paused(namespace("other"), "true"), instrumentation("inst", json!({}))]);
    assert_eq!(inject(&other, &java()).codes(), ["java/app: Injected"]);
    let two = [paused(instrumentation("a", json!({})), "true"), instrumentation("b", json!({}))];
    let annotations = [
        ("inject-java", "a"),
        ("java-container-names", "app"),
        ("inject-nodejs", "b"),
        ("nodejs-container-names", "web"),
    ];
    let containers = json!({"containers": [{"name": "app", "image": "a"}, {"name": "web", "image": "w"}]});
    let injected = inject(&catalogue(&two), &pod(&annotations, containers));
    assert_eq!(injected.codes(), ["java: Paused", "nodejs/web: Injected"]);
}

#[test]
fn the_choice_is_the_same_as_without_a_pause() {
    let other = |name: &str| {
        let mut object = instrumentation(name, json!({}));
        object["metadata"]["namespace"] = json!("other");
        object
    };
    let plain = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "app", "image": "a"}]}});
    let prior = |name: &str, priority: i32| instrumentation(name, json!({"priority": priority}));
    let default = ObjectName { namespace: "other".into(), name: "default".into() };
    for (objects, pod, used) in [
        // Another one of a lower priority.
        (vec![paused(prior("high", 1), "true"), prior("low", 0)], java(), "shop/high"),
        // The default one.
        (vec![paused(prior("own", 0), "true"), other("default")], java(), "shop/own"),
        (vec![paused(other("default"), "true")], java(), "other/default"),
        // One by name.
        (vec![paused(prior("named", 0), "true"), prior("best", 1)], naming("named"), "shop/named"),
        // One by its selector.
        (vec![paused(selecting("high", 1), "true"), selecting("low", 0)], plain, "shop/high"),
    ] {
        let mut around = Surroundings::new([]);
        around.settings.default_instrumentation = Some(default.clone());
        let injected = around.inject_knowing(&pod, &catalogue(&objects), &Known::default().owners);
        let [finding] = &injected.outcome.findings[..] else { panic!("{:?}", injected.codes()) };
        assert_eq!(finding.reason.code(), "Paused");
        let chosen = finding.instrumentation.as_ref().expect("one was chosen");
        assert_eq!(chosen.name.to_string(), used);
    }
}

#[test]
fn a_pod_that_would_not_be_injected_anyway_has_that_reason() {
    let objects = [paused(namespace(NAMESPACE), "true"), instrumentation("inst", json!({}))];
    let injected = inject(&catalogue(&objects[1..]), &java()).pod;
    let unnamed = pod(
        &[("inject-java", "true"), ("inject-python", "true")],
        json!({"containers": [
        {"name": "app", "image": "a"}, {"name": "web", "image": "w"}]}),
    );
    for (pod, codes) in [
        (injected, &["java: AlreadyInjected"][..]),
        (naming("false"), &["java: SwitchedOff"]),
        (unnamed, &["java: ContainerListMissing", "python: ContainerListMissing"]),
        (naming("missing"), &["java: InstrumentationNotFound"]),
    ] {
        assert_eq!(inject(&catalogue(&objects), &pod).codes(), codes);
    }
}

#[test]
fn what_pauses_the_most_is_named() {
    let all = [
        paused(namespace(RELEASE), "true"),
        paused(namespace(NAMESPACE), "true"),
        paused(instrumentation("inst", json!({})), "true"),
    ];
    for (objects, expected) in
        [(&all[..], Pause::Release(RELEASE.into())), (&all[1..], Pause::Namespace(NAMESPACE.into()))]
    {
        let catalogue = catalogue(objects);
        let injected = inject(&catalogue, &java());
        assert_eq!(injected.outcome.findings[0].reason, Reason::paused(expected));
        let scopes: Vec<_> = catalogue.pauses().iter().map(Pause::scope).collect();
        assert_eq!(scopes, Pause::SCOPES[3 - objects.len()..]);
    }
}

#[test]
fn the_hash_and_the_image_of_a_configuration_do_not_depend_on_a_pause() {
    let inst = instrumentation("inst", json!({"java": {"image": "own:1"}}));
    let used = |object: Value| {
        let injected = inject(&catalogue(&[object]), &java());
        injected.outcome.findings[0].instrumentation.clone().expect("one was chosen")
    };
    assert_eq!(used(paused(inst.clone(), "true")), used(inst));
}

#[test]
fn an_instrumentation_that_cannot_be_used_is_listed_as_well() {
    let broken = paused(instrumentation("broken", json!({"java": 3})), "true");
    let catalogue = catalogue(&[broken]);
    assert_eq!(inject(&catalogue, &naming("broken")).codes(), ["java: InstrumentationInvalid"]);
    assert_eq!(catalogue.pauses().len(), 1);
}
