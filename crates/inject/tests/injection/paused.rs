//! What the catalogue knows of the annotation `otel-webhook/paused`; which pods it pauses is in `tests/cases`.

use otel_webhook_inject::{catalogue::Catalogue, pause::Pause, reason::Reason};
use otel_webhook_testkit::{
    known::Known,
    objects::{NAMESPACE, asking, instrumentation},
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
    assert_eq!(inject(&catalogue, &java()).codes(), ["java: InstrumentationInvalid"]);
    assert_eq!(catalogue.pauses().len(), 1);
}
