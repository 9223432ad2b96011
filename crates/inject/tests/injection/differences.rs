//! Where the product differs from the operator on purpose, by numbers. Most of them are shown by rows of `tests/cases`
//! and of `tests/data/resources.yaml`; here are those that compare two pods or count.

mod agents;
mod jobs;
mod resources;

use otel_webhook_api::{ANNOTATION_PREFIX, Delivery, crd};
use otel_webhook_inject::workload::{Lookup, OwnerQuery, Owners};
use otel_webhook_testkit::{
    objects::{NAMESPACE, asking, instrumentation},
    surroundings::{Injected, Surroundings, with},
    table,
};
use serde_json::json;

use crate::cases;

/// The numbers of the differences.
///
/// A new one goes in here, with a row or a test that begins with its number and a row in both tables of the documents.
fn numbers() -> impl Iterator<Item = u8> {
    (1..=47).chain(50..=53)
}

#[test]
fn every_difference_has_a_test() {
    let tests = [
        include_str!("differences.rs"),
        include_str!("differences/resources.rs"),
        include_str!("hostile.rs"),
        include_str!("v1beta1.rs"),
    ];
    let rows: Vec<_> =
        cases::names().into_iter().chain(table::rows().into_iter().map(|row| row.what)).collect();
    let is_shown = |number: &u8| {
        rows.iter().any(|what| what.starts_with(&format!("D{number} ")))
            || tests.iter().any(|test| test.contains(&format!("\nfn d{number}_")))
    };
    let missing: Vec<_> = numbers().filter(|number| !is_shown(number)).collect();
    assert!(missing.is_empty(), "differences without a test: {missing:?}");
}

#[test]
fn every_difference_is_documented() {
    let page = include_str!("../../../../docs/reference/injection.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| D")?.split_once(" |"));
    let documented: Vec<u8> = rows.map(|(number, _)| number.parse().expect("a number")).collect();
    assert_eq!(documented, numbers().collect::<Vec<_>>(), "the table of docs/reference/injection.md");
}

/// Owners that could not be looked up in time.
struct Unknown;

impl Owners for Unknown {
    fn look_up(&self, _: OwnerQuery<'_>) -> Lookup {
        Lookup::Unknown
    }
}

#[test]
fn d10_the_owner_of_a_job_follows_from_its_name_if_it_cannot_be_looked_up() {
    let mut pod = asking(&["sdk"], json!({}));
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "backup-29000000", "uid": "u", "controller": true}]);
    let injected = with(json!({})).inject_with(&pod, Some(&Unknown));
    assert_eq!(injected.value("app", "OTEL_SERVICE_NAME"), Some("backup"));
}

#[test]
fn d19_a_sidecar_is_the_same_with_and_without_another_language() {
    let [alone, with_java] = [vec!["go"], vec!["java", "go"]].map(|languages| {
        let own = json!({"env": [{"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "team=a"}]});
        let injected = with(json!({})).inject(&asking(&languages, own));
        injected.container("opentelemetry-auto-instrumentation").expect("injected").clone()
    });
    assert_eq!(alone, with_java);
}

#[test]
fn d34_nodejs_reads_at_most_255_characters_of_a_value() {
    let of_value = |value: String| {
        let own = json!({"env": [{"name": "OTEL_RESOURCE_ATTRIBUTES", "value": format!("team={value}")}]});
        with(json!({})).inject(&asking(&["nodejs"], own)).outcome.warnings()
    };
    let of_name = |length: usize| {
        let mut pod = asking(&["nodejs"], json!({}));
        pod["metadata"]["name"] = json!("p".repeat(length));
        with(json!({})).inject(&pod).outcome.warnings()
    };
    assert_eq!(of_value("%2C".repeat(255)), [""; 0]);
    // "shop." and ".app" are nine characters.
    assert_eq!(of_name(246), [""; 0]);
    for (warnings, key) in [(of_value("a".repeat(256)), "team"), (of_name(247), "service.instance.id")] {
        let end = format!("the value of \"{key}\" has 256 characters; valid: at most 255");
        assert!(matches!(&warnings[..], [one] if one.ends_with(&end)), "{warnings:?}");
    }
}

#[test]
fn d35_without_a_delivery_the_agent_is_copied_as_by_the_operator() {
    // The name of the node is known, so nothing refers to the variable.
    let spec = json!({"resource": {"resourceAttributes": {"k8s.node.name": "n"}}});
    let mut around = with(spec);
    let pod = asking(&["java"], json!({}));
    let node_name = "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME";
    let copied = around.inject(&pod);
    assert_eq!(copied.names("initContainers"), ["opentelemetry-auto-instrumentation-java"]);
    assert!(copied.position("app", node_name).is_none(), "the operator knows it by the init container");
    around.settings.delivery = Delivery::ImageVolume;
    let mounted = around.inject(&pod);
    assert!(mounted.position("app", node_name).is_some(), "the operator knows it by this variable (D29)");
}

#[test]
fn d36_every_language_can_be_opted_in_to_by_a_selector_with_the_same_result_as_by_an_annotation() {
    for language in crd::LANGUAGES {
        let annotated = asking(&[language], json!({}));
        let mut plain = annotated.clone();
        let annotations = plain["metadata"]["annotations"].as_object_mut().expect("annotations");
        annotations.remove(&format!("{ANNOTATION_PREFIX}inject-{language}"));
        let selecting = with(json!({"inject": [language], "selector": {}})).inject(&plain);
        assert_eq!(selecting.codes(), [format!("{language}/app: Injected")]);
        assert_eq!(selecting.pod["spec"], with(json!({})).inject(&annotated).pod["spec"], "{language}");
    }
}

fn hashes(injected: &Injected) -> Vec<String> {
    let used = injected.outcome.findings.iter().filter_map(|finding| finding.instrumentation.as_ref());
    used.map(|used| used.hash.to_string()).collect()
}

#[test]
fn d39_the_hash_is_that_of_an_instrumentation_with_the_image_of_the_namespace() {
    let image = "registry.example.com/java:3";
    let annotations = json!({"otel-webhook/default-image-java": image});
    let metadata = json!({"name": NAMESPACE, "annotations": annotations});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    let pod = asking(&["java", "nodejs"], json!({}));
    let by_namespace = Surroundings::new([namespace, instrumentation("inst", json!({}))]).inject(&pod);
    let [without, by_instrumentation] =
        [json!({}), json!({"java": {"image": image}})].map(|spec| hashes(&with(spec).inject(&pod)));
    assert_eq!(hashes(&by_namespace), by_instrumentation);
    assert_ne!(by_instrumentation[0], without[0], "pods from before are outdated");
    assert_eq!(by_instrumentation[1], without[1], "those of other languages are not");
}
