//! Default images of a namespace.

use otel_webhook_api::defaults::JAVA;
use otel_webhook_inject::Note;
use otel_webhook_testkit::{
    objects::{instrumentation, pod},
    surroundings::{Injected, Surroundings, with},
};
use serde_json::{Value, json};

const NAMES: [&str; 2] =
    ["opentelemetry-auto-instrumentation-java", "opentelemetry-auto-instrumentation-nodejs"];
const OLD: &str = "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:1.33.6";

/// The namespace with a default image for Java.
fn namespace(image: &str) -> Value {
    let annotations = json!({"otel-webhook/default-image-java": image});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": annotations}})
}

/// A pod that opts in to Java and Node.js, in two containers.
fn injected(around: &Surroundings) -> Injected {
    let annotations = [
        ("inject-java", "true"),
        ("inject-nodejs", "true"),
        ("java-container-names", "app"),
        ("nodejs-container-names", "web"),
    ];
    let containers = json!([{"name": "app", "image": "app:1"}, {"name": "web", "image": "web:1"}]);
    let injected = around.inject(&pod(&annotations, json!({"containers": containers})));
    assert_eq!(injected.codes(), ["java/app: Injected", "nodejs/web: Injected"]);
    injected
}

/// The images for Java and Node.js, as the init containers have them and as they are reported, with the notes.
fn images(injected: &Injected) -> [(String, String, Vec<Note>); 2] {
    let mut findings = injected.outcome.findings.iter();
    NAMES.map(|name| {
        let container = injected.container(name).expect("an init container");
        let finding = findings.next().expect("a finding");
        let used = finding.instrumentation.as_ref().and_then(|used| used.image.as_deref());
        let image = container["image"].as_str().unwrap_or_default().to_owned();
        (image, used.unwrap_or_default().to_owned(), finding.notes.clone())
    })
}

fn hashes(injected: &Injected) -> Vec<String> {
    let used = injected.outcome.findings.iter().filter_map(|finding| finding.instrumentation.as_ref());
    used.map(|used| used.hash.to_string()).collect()
}

#[test]
fn d39_the_default_image_of_the_namespace_replaces_that_of_the_installation() {
    let mut around = with(json!({}));
    let before = injected(&around);
    around.objects.push(namespace("registry.example.com/java:3"));
    let after = injected(&around);
    let note = Note::ImageOfNamespace {
        image: "registry.example.com/java:3".to_owned(),
        instead_of: JAVA.image.to_owned(),
    };
    let [java, nodejs] = images(&after);
    let image = "registry.example.com/java:3".to_owned();
    assert_eq!(java, (image.clone(), image, vec![note]));
    assert_eq!(nodejs, images(&before)[1], "other languages stay");
    let [before, after] = [before, after].map(|injected| hashes(&injected));
    assert_ne!(after[0], before[0], "pods from before are outdated");
    assert_eq!(after[1], before[1]);
}

#[test]
fn d39_only_an_image_that_the_author_chose_stays() {
    let recorded = "instrumentation.opentelemetry.io/default-auto-instrumentation-java-image";
    let mut inst = instrumentation("inst", json!({"java": {"image": OLD}}));
    inst["metadata"]["annotations"] = json!({recorded: OLD});
    // It is kept without the namespace's image, since a version with breaking changes lies in between.
    let kept = images(&injected(&Surroundings::new([inst.clone()])));
    assert_eq!(kept[0].0, OLD);
    let around = Surroundings::new([inst.clone(), namespace(JAVA.image)]);
    assert_eq!(images(&injected(&around))[0].0, JAVA.image);
    // One that is the same changes nothing, and nothing is said.
    let around = Surroundings::new([inst.clone(), namespace(OLD)]);
    assert_eq!(images(&injected(&around)), kept);
    inst["metadata"]["annotations"] = json!({});
    let around = Surroundings::new([inst, namespace(JAVA.image)]);
    assert_eq!(images(&injected(&around))[0], (OLD.to_owned(), OLD.to_owned(), vec![]));
}

#[test]
fn d39_a_pod_with_the_image_has_the_hash_of_an_instrumentation_with_it() {
    let image = "registry.example.com/java:3";
    let mut by_namespace = with(json!({}));
    by_namespace.objects.push(namespace(image));
    let by_instrumentation = with(json!({"java": {"image": image}}));
    assert_eq!(hashes(&injected(&by_namespace)), hashes(&injected(&by_instrumentation)));
}

#[test]
fn d39_what_is_not_an_image_reference_is_ignored_with_a_warning() {
    let mut around = with(json!({}));
    around.objects.push(namespace("java 3"));
    let [(image, _, notes), _] = images(&injected(&around));
    assert_eq!(image, JAVA.image);
    let sentence = "the annotation otel-webhook/default-image-java of the namespace is \"java 3\", which is not an image \
                    reference and is ignored; valid: a reference such as registry.example.com/agents/java:1.0";
    assert!(notes[0].is_warning());
    assert_eq!(notes.iter().map(ToString::to_string).collect::<Vec<_>>(), [sentence]);
}
