//! What opts in without an annotation: the selector of an Instrumentation, and labels.

use otel_webhook_api::ANNOTATION_PREFIX;
use otel_webhook_inject::{Note, STATUS, reason::ObjectName};
use otel_webhook_testkit::{
    objects::{asking, instrumentation, pod},
    surroundings::{Injected, Surroundings},
};
use serde_json::{Value, json};

const JAVA: &str = "instrumentation.opentelemetry.io/inject-java";

/// A pod that says nothing of injection.
fn silent(labels: Value) -> Value {
    let mut pod = pod(&[], json!({"containers": [{"name": "app", "image": "example.com/app:1"}]}));
    pod["metadata"]["labels"] = labels;
    pod
}

fn order() -> Value {
    silent(json!({"app": "order"}))
}

/// An Instrumentation that opts in to Java.
fn java(name: &str, selector: Value) -> Value {
    instrumentation(name, json!({"inject": ["java"], "selector": selector}))
}

fn app(value: &str) -> Value {
    json!({"matchLabels": {"app": value}})
}

/// A change of the fields of an object.
fn changed(mut object: Value, changes: Value) -> Value {
    json_patch::merge(&mut object, &changes);
    object
}

fn namespace(metadata: Value) -> Value {
    changed(
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"metadata": metadata}),
    )
}

/// An Instrumentation of the namespace of the default one that opts in to Java.
fn platform(name: &str, namespaces: Value, pods: Value) -> Value {
    let spec = json!({"namespaceSelector": namespaces, "selector": pods});
    changed(java(name, json!({})), json!({"metadata": {"namespace": "platform"}, "spec": spec}))
}

/// The pods of the usual namespace, where the default Instrumentation is in `platform`.
fn with_platform(objects: impl IntoIterator<Item = Value>) -> Surroundings {
    let mut around = Surroundings::new(objects);
    around.settings.default_instrumentation =
        Some(ObjectName { namespace: "platform".into(), name: "default".into() });
    around
}

/// The names of the Instrumentations that were used.
fn used(injected: &Injected) -> Vec<String> {
    let findings = injected.outcome.findings.iter();
    let used = findings.filter_map(|finding| Some(finding.instrumentation.as_ref()?.name.to_string()));
    used.collect()
}

fn sentences(injected: &Injected) -> Vec<String> {
    injected.outcome.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn d36_the_selector_of_an_instrumentation_opts_in() {
    let mut around = Surroundings::new([java("order", app("order"))]);
    let injected = around.inject(&order());
    assert_eq!(
        (injected.codes(), used(&injected)),
        (vec!["java/app: Injected".into()], vec!["shop/order".into()])
    );
    let name = ObjectName { namespace: "shop".into(), name: "order".into() };
    let notes = &injected.outcome.findings[0].notes;
    assert!(notes.contains(&Note::OptedInBySelector { name }), "{notes:?}");
    assert_eq!(around.inject(&silent(json!({"app": "cart"}))).codes(), [""; 0]);
    around.settings.stamp = true;
    let stamped = around.inject(&order()).pod;
    let status = stamped["metadata"]["annotations"][STATUS].as_str().expect("a status");
    let note = r#"opted in by the selector of Instrumentation \"shop/order\""#;
    assert!(status.contains(note), "{status}");
    let own = asking(&["java"], json!({}));
    let by_annotation = Surroundings::new([instrumentation("order", json!({}))]).inject(&own);
    let same = |one: &Injected| one.pod["spec"].clone();
    let labelled = changed(own, json!({"metadata": {"annotations": null, "labels": {"app": "order"}}}));
    assert_eq!(
        same(&Surroundings::new([java("order", app("order"))]).inject(&labelled)),
        same(&by_annotation)
    );
}

#[test]
fn an_empty_selector_opts_in_all_pods_and_a_missing_one_none() {
    let codes = |spec: Value| Surroundings::new([instrumentation("all", spec)]).inject(&order()).codes();
    assert_eq!(codes(json!({"inject": ["java"], "selector": {}})), ["java/app: Injected"]);
    for spec in [json!({"inject": ["java"]}), json!({"inject": [], "selector": {}}), json!({"selector": {}})]
    {
        assert_eq!(codes(spec.clone()), [""; 0], "{spec}");
    }
}

#[test]
fn every_language_can_be_opted_in_to() {
    let mut pod = order();
    pod["metadata"]["annotations"][format!("{ANNOTATION_PREFIX}otel-go-auto-target-exe")] = json!("/app");
    for language in otel_webhook_api::crd::LANGUAGES {
        let spec = json!({"inject": [language], "selector": {}});
        let injected = Surroundings::new([instrumentation("all", spec)]).inject(&pod);
        assert_eq!(injected.codes(), [format!("{language}/app: Injected")]);
    }
}

#[test]
fn false_on_pod_or_namespace_opts_out() {
    for place in ["annotations", "labels"] {
        let out = json!({place: {JAVA: "false"}});
        let pod = changed(order(), json!({"metadata": out}));
        let by_pod = Surroundings::new([java("order", app("order"))]).inject(&pod);
        let kind = if place == "labels" { "label" } else { "annotation" };
        assert_eq!(sentences(&by_pod), [format!("java: opted out by the {kind} {JAVA} of the pod")]);
        let by_namespace = with_platform([
            java("order", app("order")),
            platform("all", json!({}), json!({})),
            namespace(out),
        ])
        .inject(&order());
        assert_eq!(
            sentences(&by_namespace),
            [format!("java: opted out by the {kind} {JAVA} of the namespace")]
        );
        assert!(by_pod.is_unchanged() && by_namespace.is_unchanged());
    }
}

#[test]
fn what_pod_and_namespace_say_overrides_the_selector() {
    let objects = [java("order", app("order")), instrumentation("other", json!({}))];
    let around = Surroundings::new(objects.clone());
    let pod = |value: &str| changed(order(), json!({"metadata": {"annotations": {JAVA: value}}}));
    assert_eq!(used(&around.inject(&pod("other"))), ["shop/other"]);
    let by_namespace =
        Surroundings::new(objects.into_iter().chain([namespace(json!({"annotations": {JAVA: "other"}}))]));
    assert_eq!(used(&by_namespace.inject(&order())), ["shop/other"]);
    assert_eq!(used(&by_namespace.inject(&pod("true"))), ["shop/other"]);
}

#[test]
fn of_several_a_selector_comes_before_none_and_then_the_priority_decides() {
    let priority = |name: &str, selector: Value, priority: i32| {
        changed(java(name, selector), json!({"spec": {"priority": priority}}))
    };
    let (all, low, high) =
        (priority("all", json!({}), 9), priority("low", app("order"), 1), priority("high", app("order"), 2));
    let named = instrumentation("not-opting-in", json!({"selector": app("order"), "priority": 8}));
    let around = |objects: &[&Value]| Surroundings::new(objects.iter().map(|object| (*object).clone()));
    assert_eq!(used(&around(&[&all, &low, &high, &named]).inject(&order())), ["shop/high"]);
    assert_eq!(used(&around(&[&all, &named]).inject(&order())), ["shop/all"]);
    let tie = priority("tie", app("order"), 2);
    let expected = "java: several Instrumentations of namespace \"shop\" opt this pod in by their selectors, with the \
                    same priority: high, tie; set spec.selector or spec.priority, or name one in an annotation of the pod";
    let tied = around(&[&all, &low, &high, &tie]).inject(&order());
    assert_eq!(sentences(&tied), [expected]);
    assert!(tied.is_unchanged());
}

#[test]
fn one_that_cannot_be_used_is_no_candidate() {
    let invalid =
        changed(java("invalid", app("order")), json!({"spec": {"java": {"image": "A b"}, "priority": 1}}));
    let both = Surroundings::new([invalid.clone(), java("valid", app("order"))]);
    assert_eq!(used(&both.inject(&order())), ["shop/valid"]);
    let alone = Surroundings::new([invalid]).inject(&order());
    assert_eq!(alone.codes(), ["java: InstrumentationInvalid"]);
    let off = Surroundings::new([instrumentation("a", json!({"inject": ["jav"], "selector": {}}))]);
    assert_eq!(off.inject(&order()).codes(), [""; 0], "an unknown language opts in to nothing");
}

#[test]
fn an_injected_pod_is_not_injected_again() {
    let around = Surroundings::new([java("all", json!({}))]);
    let once = around.inject(&order()).pod;
    let twice = around.inject(&once);
    assert_eq!(twice.codes(), ["java: AlreadyInjected"]);
    assert!(twice.is_unchanged());
    for name in ["opentelemetry-auto-instrumentation-nodejs", "otel-agent-source-container-clone"] {
        let by_operator =
            changed(order(), json!({"spec": {"initContainers": [{"name": name, "image": "a"}]}}));
        assert!(around.inject(&by_operator).is_unchanged(), "{name}");
    }
    let sdk = Surroundings::new([instrumentation("sdk", json!({"inject": ["sdk"], "selector": {}}))]);
    let variables = sdk.inject(&order()).pod;
    assert_eq!(around.inject(&variables).codes(), ["java: AlreadyInjected"]);
}

#[test]
fn a_selector_gives_way_to_another_language_of_pod_or_namespace() {
    let objects = [java("all", json!({})), instrumentation("plain", json!({"selector": app("other")}))];
    let node = json!({"annotations": {format!("{ANNOTATION_PREFIX}inject-nodejs"): "plain"}});
    let mut around = Surroundings::new(objects.clone());
    around.settings.stamp = true;
    let by_pod = around.inject(&changed(order(), json!({"metadata": node})));
    let ignored = "java: the opt-in by the selector of Instrumentation \"shop/all\" is ignored because the pod or its \
                   namespace opts in to nodejs, and there is no list of containers for each language";
    assert_eq!(sentences(&by_pod), [ignored, "nodejs in app: injected"]);
    assert_eq!(by_pod.pod["metadata"]["labels"]["otel-webhook/injected"], "true", "no warning");
    let by_namespace = Surroundings::new(objects.into_iter().chain([namespace(node)])).inject(&order());
    assert_eq!(sentences(&by_namespace), [ignored, "nodejs in app: injected"]);
    let several =
        Surroundings::new([instrumentation("two", json!({"inject": ["java", "nodejs"], "selector": {}}))]);
    assert_eq!(
        several.inject(&order()).codes(),
        ["java: ContainerListMissing", "nodejs: ContainerListMissing"]
    );
    let mut listed = order();
    for list in ["java-container-names", "nodejs-container-names"] {
        listed["metadata"]["annotations"][format!("{ANNOTATION_PREFIX}{list}")] = json!("app");
    }
    assert_eq!(several.inject(&listed).codes(), ["java/app: Injected", "nodejs/app: Injected"]);
}

#[test]
fn only_the_namespace_of_the_default_selects_namespaces() {
    let team = json!({"matchLabels": {"team": "a"}});
    let all = platform("all", team.clone(), json!({}));
    let labelled = |team: &str| namespace(json!({"labels": {"team": team}}));
    let codes = |objects: Vec<Value>| with_platform(objects).inject(&order()).codes();
    assert_eq!(codes(vec![all.clone(), labelled("a")]), ["java/app: Injected"]);
    assert_eq!(codes(vec![all.clone(), labelled("b")]), [""; 0]);
    assert_eq!(codes(vec![all.clone()]), [""; 0], "whether an unknown namespace opts out is not known");
    let by_name =
        platform("name", json!({"matchLabels": {"kubernetes.io/metadata.name": "shop"}}), json!({}));
    assert_eq!(codes(vec![by_name, labelled("a")]), ["java/app: Injected"], "every namespace has this label");
    let both = with_platform([all.clone(), java("own", json!({})), labelled("a")]);
    assert_eq!(used(&both.inject(&order())), ["shop/own"], "its own Instrumentation comes first");
    assert_eq!(
        Surroundings::new([all, labelled("a")]).inject(&order()).codes(),
        [""; 0],
        "there is no default"
    );

    let tenant = changed(java("tenant", app("order")), json!({"spec": {"namespaceSelector": team}}));
    let denied = with_platform([tenant, labelled("a")]).inject(&order());
    let expected = "java: Instrumentation \"shop/tenant\" sets spec.namespaceSelector, which is allowed only in the \
                    namespace of --default-instrumentation, so its spec.inject is not used; remove spec.namespaceSelector";
    assert_eq!(sentences(&denied), [expected]);
    assert!(denied.is_unchanged());
}

#[test]
fn a_selector_of_namespaces_says_nothing_to_others() {
    let metadata = json!({"metadata": {"namespace": "tenant"}});
    let tenant = changed(platform("all", json!({}), json!({})), metadata);
    assert_eq!(with_platform([tenant, namespace(json!({}))]).inject(&order()).codes(), [""; 0]);
}

#[test]
fn d37_a_label_opts_in_and_overrides_an_annotation() {
    let objects = [instrumentation("a", json!({})), instrumentation("b", json!({}))];
    let around = Surroundings::new(objects.clone());
    let said = |place: &str, value: &str| json!({place: {JAVA: value}});
    let pod = |metadata: &Value| changed(order(), json!({"metadata": metadata}));
    let label = pod(&said("labels", "a"));
    assert_eq!(used(&around.inject(&label)), ["shop/a"]);
    assert_eq!(
        used(&around.inject(&changed(label.clone(), json!({"metadata": said("annotations", "b")})))),
        ["shop/a"]
    );
    let empty = changed(pod(&said("labels", "")), json!({"metadata": said("annotations", "b")}));
    assert_eq!(used(&around.inject(&empty)), ["shop/b"], "an empty label says nothing");
    let of_namespace =
        |metadata: Value| Surroundings::new(objects.clone().into_iter().chain([namespace(metadata)]));
    assert_eq!(used(&of_namespace(said("labels", "b")).inject(&order())), ["shop/b"]);
    assert_eq!(used(&of_namespace(said("labels", "b")).inject(&pod(&said("labels", "true")))), ["shop/b"]);
    assert_eq!(used(&of_namespace(said("annotations", "b")).inject(&label)), ["shop/a"]);
    let both = changed(said("labels", "a"), said("annotations", "b"));
    assert_eq!(used(&of_namespace(both).inject(&order())), ["shop/a"]);
}
