//! What has to hold for any input, for the fuzz targets of `fuzz/` and for the test that replays
//! their seeds. Each function takes the bytes of a fuzzer and panics where something does not hold.

use std::collections::{BTreeMap, HashSet};

use otel_webhook_api::{
    LabelSelector, defaulting,
    defaults::DefaultImages,
    image::{Stored, not_upgradable},
    quantity::Quantity,
    validation,
};
use otel_webhook_inject::{language::LANGUAGES, selector::Selector, text::Map};
use otel_webhook_review::{AdmissionRequest, AdmissionResponse};
use serde_json::{Value, json};

use crate::{
    known::Known,
    models::{invariants, sanity, validity},
    objects::{instrumentation, items, usual_spec},
    surroundings::{self, Surroundings},
};

mod fleet;
mod stamp;

/// A target: its name, which is that of the folder of its seeds, and what it checks.
pub type Target = (&'static str, fn(&[u8]));

/// The targets that need nothing of the program.
pub const TARGETS: [Target; 11] = [
    ("review", review),
    ("pod", pod),
    ("instrumentation", instrumentation_of),
    ("quantity", quantity),
    ("selector", selector),
    ("image", image),
    ("stamp", stamp::stamp),
    ("running-pod", fleet::running_pod),
    ("workload", fleet::workload),
    ("ledger", fleet::ledger),
    ("record", fleet::record),
];

/// A body that may be an AdmissionReview of a pod: the response is one, and allows it.
fn review(data: &[u8]) {
    let Ok(request) = AdmissionRequest::parse(data) else { return };
    let response = match &request.pod {
        Ok(pod) => {
            let objects = [instrumentation_in(&request.namespace)];
            let Known { catalogue, owners, .. } = Known::of(&objects, &DefaultImages::default());
            let outcome = Ok(surroundings::decide(&catalogue, &owners, &request.namespace, pod));
            AdmissionResponse::of(&request.uid, &outcome).write()
        }
        Err(skip) => AdmissionResponse::allowed(&request.uid, skip.warning().as_deref()).write(),
    };
    let response: Value = serde_json::from_slice(&response).expect("a response is JSON");
    assert_eq!(response["response"]["uid"], *request.uid);
    assert_eq!(response["response"]["allowed"], true);
}

/// A pod: it is injected into, and what comes out is as valid as what came in.
fn pod(data: &[u8]) {
    let Ok(mut before) = serde_json::from_slice::<Value>(data) else { return };
    if !before.is_object() || otel_webhook_inject::pod::Pod::parse(&before.to_string()).is_err() {
        return;
    }
    ask_for_something(&mut before);
    let instrumentation = instrumentation("inst", usual_spec());
    let around = Surroundings::new([instrumentation.clone()]);
    let Some(after) = injected(&around, &before) else { return };
    let faults: Vec<_> =
        sanity::faults(&before, &after).into_iter().chain(validity::faults(&before, &after)).collect();
    assert!(faults.is_empty(), "{faults:?}\n{before}\n{after}");
    invariants::unrelated(&before, &after, &instrumentation)
        .unwrap_or_else(|problem| panic!("{problem}\n{before}\n{after}"));
}

/// The specification of an Instrumentation: defaulted, validated, used.
fn instrumentation_of(data: &[u8]) {
    let Ok(said) = serde_json::from_slice::<Value>(data) else { return };
    let object = instrumentation("inst", said);
    let mut defaulted = object.clone();
    let patch = defaulting(&object, &DefaultImages::default());
    json_patch::patch(&mut defaulted, &patch).expect("the patch applies");
    let verdict = validation::validate(&object, None);
    let before = crate::objects::asking(&["java"], json!({"name": "app", "image": "registry/app:1"}));
    let around = Surroundings::new([object.clone()]);
    let Some(after) = injected(&around, &before) else { return };
    // Nothing is promised of an Instrumentation that would be rejected, but that nothing panics.
    let faults = validity::faults(&before, &after);
    assert!(faults.is_empty() || !verdict.is_allowed(), "{faults:?}\n{object}\n{after}");
}

/// A quantity: what is written of it is read as the same.
fn quantity(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(parsed) = Quantity::parse(text) else { return };
    assert_eq!(Quantity::parse(&parsed.to_string()), Some(parsed), "{text:?}");
    assert!(parsed.rounded_up(Quantity::ONE) >= parsed && parsed.rounded_down(Quantity::ONE) <= parsed);
}

/// A label selector and labels: it matches as Kubernetes says.
fn selector(data: &[u8]) {
    let Ok(said) = serde_json::from_slice::<Value>(data) else { return };
    let Ok(selector) = serde_json::from_value::<LabelSelector>(said["selector"].clone()) else { return };
    let text = said["labels"].to_string();
    let Ok(labels) = serde_json::from_str::<Map<'_>>(&text) else { return };
    let Ok(Some(compiled)) = Selector::new(&selector) else { return };
    let all: BTreeMap<&str, &str> = labels.iter().collect();
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| all.get(&**key) == Some(&&**value));
    let expressed = selector.match_expressions.iter().flatten().all(|one| {
        let value = all.get(&*one.key);
        let listed = value.is_some_and(|value| one.values.iter().flatten().any(|valid| valid == value));
        match &*one.operator {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            _ => value.is_none(),
        }
    });
    assert_eq!(compiled.matches(&labels), equal && expressed, "{said}");
}

/// An image reference, as chosen and as recorded: a choice is never empty.
fn image(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (chosen, recorded) = text.split_once('\n').unwrap_or((text, ""));
    let images = DefaultImages::default();
    for language in LANGUAGES.into_iter().filter_map(|language| language.defaults) {
        let stored = Stored { image: Some(chosen), recorded: Some(recorded), is_blocked: false };
        let choice = images.choose(language, stored);
        assert!(!choice.image.is_empty(), "{text:?}");
        not_upgradable(language, chosen, recorded);
    }
}

/// Documents of a stream, by the program's reader and writer: what was read once is read again.
///
/// # Panics
/// If it is not.
pub fn documents(data: &[u8], read: impl Fn(&str) -> Option<Vec<Value>>, write: impl Fn(&Value) -> String) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for value in read(text).into_iter().flatten().filter(|value| !value.is_null()) {
        let written = write(&value);
        assert_eq!(read(&written).as_deref(), Some(&[value][..]), "{written:?}");
    }
}

/// The seeds of a target, with the paths of their files.
///
/// # Panics
/// If there are none.
pub fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = format!("{}/../../fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let paths = files.map(|file| file.expect("a file").path());
    paths.map(|path| (path.display().to_string(), std::fs::read(&path).expect("a seed"))).collect()
}

fn instrumentation_in(namespace: &str) -> Value {
    let mut object = instrumentation("inst", usual_spec());
    object["metadata"]["namespace"] = namespace.into();
    object
}

/// Opts in to Java if the pod opts in to nothing, so that no input does nothing.
fn ask_for_something(pod: &mut Value) {
    let prefix = otel_webhook_api::ANNOTATION_PREFIX;
    let annotations = &mut pod["metadata"]["annotations"];
    let asks = annotations.as_object().is_some_and(|all| all.keys().any(|key| key.starts_with(prefix)));
    if !asks && (annotations.is_null() || annotations.is_object()) {
        annotations[format!("{prefix}inject-java")] = "true".into();
    }
}

/// The pod after injection, if an API server could have sent it: names are there, and are unique.
fn injected(around: &Surroundings, before: &Value) -> Option<Value> {
    let after = around.inject(before).pod;
    let spec = &before["spec"];
    let mut names = HashSet::new();
    let mut all = items(&spec["containers"]).chain(items(&spec["initContainers"]));
    let is_named =
        |container: &Value| container["name"].as_str().is_some_and(|name| names.insert(name.to_owned()));
    (after.is_object() && all.all(is_named)).then_some(after)
}
