//! Instrumentations of other namespaces: who may use them, and that nobody else learns of them.

mod generated;

use otel_webhook::store::{Store, Writer};
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject as inject;
use otel_webhook_inject::{CrossNamespace, Input, Outcome, Settings, pod::Pod, reason::ObjectName};
use otel_webhook_testkit::{
    objects::{NAMESPACE, asking, instrumentation, pod},
    surroundings::Surroundings,
};
use serde_json::{Value, json};

const ALLOWED: &str = "otel-webhook/allowed-namespaces";
const MODES: [CrossNamespace; 3] = [CrossNamespace::Allow, CrossNamespace::Granted, CrossNamespace::Deny];

/// An Instrumentation of another namespace, with its list of allowed namespaces.
fn foreign(name: &str, allowed: Option<&str>) -> Value {
    let mut object = instrumentation(name, json!({}));
    object["metadata"]["namespace"] = json!("infra");
    if let Some(allowed) = allowed {
        object["metadata"]["annotations"] = json!({(ALLOWED): allowed});
    }
    object
}

fn around(mode: CrossNamespace, objects: impl IntoIterator<Item = Value>) -> Surroundings {
    let mut around = Surroundings::new(objects);
    around.settings.cross_namespace = mode;
    around
}

/// What comes of a pod that names an Instrumentation for Java: whose it got, or the reason.
fn named(around: &Surroundings, name: &str) -> String {
    let spec = json!({"containers": [{"name": "app", "image": "app:1"}]});
    let injected = around.inject(&pod(&[("inject-java", name)], spec));
    let finding = &injected.outcome.findings[0];
    finding.instrumentation.as_ref().map_or_else(|| finding.reason.to_string(), ToString::to_string)
}

#[test]
fn an_instrumentation_is_used_from_the_namespaces_that_it_allows() {
    let lists = [
        (None, false),
        (Some(""), false),
        (Some("cart"), false),
        (Some("Shop, sho*, shop-2"), false),
        (Some("cart , shop"), true),
        (Some("*"), true),
    ];
    for (list, is_granted) in lists {
        let used = |mode| named(&around(mode, [foreign("base", list)]), "infra/base") == "infra/base";
        assert_eq!(MODES.map(used), [true, is_granted, false], "{list:?}");
    }
}

#[test]
fn what_is_not_granted_has_the_words_of_what_is_not_there() {
    let objects = || [foreign("base", None), foreign("given", Some("shop")), foreign("other", Some("cart"))];
    let granted = around(CrossNamespace::Granted, objects());
    let said = named(&granted, "infra/base");
    assert_eq!(
        said,
        "Instrumentation \"infra/base\" not found, or not granted to namespace \"shop\" by its annotation \
         otel-webhook/allowed-namespaces; granted Instrumentations of its namespace: given"
    );
    assert_eq!(named(&granted, "infra/bose"), said.replace("base", "bose"));
    let nowhere = named(&around(CrossNamespace::Granted, []), "infra/base");
    assert_eq!(nowhere, said.replace("given", "none"));

    let denied = named(&around(CrossNamespace::Deny, objects()), "infra/base");
    assert_eq!(
        denied,
        "Instrumentation \"infra/base\" is in another namespace, which --cross-namespace=deny does \
         not allow; create one in namespace \"shop\" and name it"
    );
    assert_eq!(named(&around(CrossNamespace::Deny, []), "infra/base"), denied);

    let allowed = named(&around(CrossNamespace::Allow, objects()), "infra/bose");
    let expected = "Instrumentation \"infra/bose\" not found; its namespace has: base, given, other";
    assert_eq!(allowed, expected);
}

#[test]
fn one_of_the_pods_own_namespace_is_used_in_every_mode() {
    for mode in MODES {
        let around = around(mode, [instrumentation("inst", json!({}))]);
        for name in ["true", "inst", "shop/inst"] {
            assert_eq!(named(&around, name), "shop/inst", "{mode:?} {name}");
        }
        let expected = "Instrumentation \"shop/other\" not found; its namespace has: inst";
        assert_eq!(named(&around, "shop/other"), expected, "{mode:?}");
    }
}

#[test]
fn the_default_instrumentation_is_used_from_every_namespace() {
    for mode in MODES {
        let mut around = around(mode, [foreign("base", None), foreign("other", None)]);
        let name = |name: &str| Some(ObjectName { namespace: "infra".into(), name: name.into() });
        around.settings.default_instrumentation = name("base");
        assert_eq!(named(&around, "true"), "infra/base", "{mode:?}");
        assert_eq!(named(&around, "infra/base"), "infra/base", "{mode:?}");
        let is_used = named(&around, "infra/other") == "infra/other";
        assert_eq!(is_used, mode == CrossNamespace::Allow, "{mode:?}");

        around.settings.default_instrumentation = name("gone");
        let expected = "default Instrumentation \"infra/gone\" not found; create it, or set another one \
                        by --default-instrumentation";
        assert_eq!(named(&around, "true"), expected, "{mode:?}");
    }
}

#[test]
fn a_namespace_without_any_is_told_what_it_may_do() {
    let advice = |mode| {
        let said = named(&around(mode, []), "true");
        said.split_once("no default is set; ").expect("advice").1.to_owned()
    };
    let granted = "create one, or name one that is granted to the namespace as namespace/name";
    assert_eq!(MODES.map(advice), ["create one, or name one as namespace/name", granted, "create one"]);
}

#[test]
fn the_list_is_read_when_the_instrumentation_is_stored_also_of_one_that_cannot_be_used() {
    let mut writer = Writer::new(DefaultImages::default());
    let mut code = |allowed, spec: Value| {
        let mut object = foreign("base", allowed);
        object["spec"] = spec;
        writer.put(&object);
        writer.publish();
        let settings = Settings { cross_namespace: CrossNamespace::Granted, ..Settings::default() };
        let mut asks = asking(&["java"], json!({}));
        asks["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-java"] = json!("infra/base");
        decided(&writer.store(), &settings, &asks).findings[0].reason.code()
    };
    let bad = || json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}});
    assert_eq!(code(None, json!({})), "InstrumentationNotGranted");
    assert_eq!(code(Some("shop"), json!({})), "Injected");
    assert_eq!(code(Some("shop"), bad()), "InstrumentationInvalid");
    assert_eq!(code(Some("cart"), bad()), "InstrumentationNotGranted");
    assert_eq!(code(None, json!({})), "InstrumentationNotGranted");
}

fn decided(store: &Store, settings: &Settings, pod: &Value) -> Outcome {
    let snapshot = store.snapshot();
    let text = pod.to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let input = Input { pod: &pod, namespace: NAMESPACE, catalogue: &snapshot.catalogue, settings };
    inject::build(inject::decide(input), &snapshot.owners)
}
