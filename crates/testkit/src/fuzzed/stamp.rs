//! The stamp: whatever text was copied into it, and whatever names get into it.

use std::sync::LazyLock;

use otel_webhook_api::{ANNOTATION_PREFIX, defaults::DefaultImages};
use otel_webhook_inject::{LABEL, MESSAGE, STATUS, line::is_hidden};
use serde_json::{Value, json};

use crate::{
    known::Known,
    objects::{asking, instrumentation, usual_spec},
    surroundings::{Injected, Surroundings},
};

/// The documented maximum length of either annotation, in bytes.
const LONGEST: usize = 2048;

/// What is the same for every input: pods, and what is known around them.
static USUAL: LazyLock<Usual> = LazyLock::new(Usual::new);

struct Usual {
    around: Around,
    opted_in: Value,
    cases: Vec<Case>,
}

/// A pod without a stamp, and what becomes of it.
struct Case {
    before: Value,
    after: Injected,
    /// What remains of a stamp that was copied into it.
    remains: &'static [&'static str],
}

/// An Instrumentation is compiled once, which takes longer than a review.
struct Around {
    surroundings: Surroundings,
    known: Known,
}

/// A text as a copied stamp, and as each name that a stamp may have.
pub fn stamp(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for case in &USUAL.cases {
        copied(text, case);
    }
    for (around, pod) in [
        (None, annotated("inject-java", text)),
        (None, annotated("container-names", text)),
        (None, with_container(text)),
        (Some(Around::of(instrumentation(text, usual_spec()))), USUAL.opted_in.clone()),
        (Some(Around::of(instrumentation("inst", json!({"java": {"image": text}})))), USUAL.opted_in.clone()),
    ] {
        named_in(text, around.as_ref().unwrap_or(&USUAL.around), &pod);
    }
}

/// A stamp that was copied from elsewhere decides nothing, and is replaced on a pod that opts in.
fn copied(text: &str, case: &Case) {
    let before = stamped(text, &case.before);
    let after = USUAL.around.inject(&before);
    let expected = &case.after;
    assert_eq!(after.codes(), expected.codes(), "{text:?}");
    assert_eq!(unstamped(&after.pod), unstamped(&expected.pod), "{text:?}");
    for (map, key) in PLACES {
        let from = if case.remains.contains(&key) { &before } else { &expected.pod };
        let [found, wanted] = [&after.pod, from].map(|pod| pod["metadata"][map].get(key));
        assert_eq!(found, wanted, "{key} of {:?}, {text:?}", expected.codes());
    }
}

/// A text that is a name: the stamp is as documented, and a second review changes nothing.
fn named_in(text: &str, around: &Around, before: &Value) {
    let after = around.inject(before).pod;
    check(&after["metadata"], text);
    let second = around.inject(&after);
    assert_eq!(second.pod, after, "{text:?}: {:?}", second.outcome.patch);
}

fn check(metadata: &Value, text: &str) {
    let annotation = |key: &str| metadata["annotations"][key].as_str();
    // There is none on a pod that does not opt in.
    let Some(status) = annotation(STATUS) else { return };
    let Ok(Value::Array(entries)) = serde_json::from_str(status) else { panic!("not a list: {status:?}") };
    let is_complete = |entry: &Value| entry["language"].is_string() && entry["outcome"].is_string();
    assert!(status.len() <= LONGEST && !entries.is_empty() && entries.iter().all(is_complete), "{status}");
    let message = annotation(MESSAGE).unwrap_or_default();
    assert!(message.len() <= LONGEST, "{} bytes", message.len());
    assert!(message.lines().all(|line| !line.contains(is_hidden)), "{message:?}");
    let label = metadata["labels"][LABEL].as_str();
    assert!(label.is_some_and(|label| ["true", "partial", "false"].contains(&label)), "{label:?}, {text:?}");
}

const PLACES: [(&str, &str); 3] = [("annotations", STATUS), ("annotations", MESSAGE), ("labels", LABEL)];

fn stamped(text: &str, pod: &Value) -> Value {
    let mut stamped = pod.clone();
    for (map, key) in PLACES {
        stamped["metadata"][map][key] = text.into();
    }
    stamped
}

/// A pod without a stamp, and without maps that are empty then.
fn unstamped(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let metadata = pod["metadata"].as_object_mut().expect("metadata");
    for (map, key) in PLACES {
        let Some(entries) = metadata.get_mut(map).and_then(Value::as_object_mut) else { continue };
        entries.remove(key);
        if entries.is_empty() {
            metadata.remove(map);
        }
    }
    pod
}

fn annotated(key: &str, text: &str) -> Value {
    let mut pod = USUAL.opted_in.clone();
    pod["metadata"]["annotations"][format!("{ANNOTATION_PREFIX}{key}")] = text.into();
    pod
}

fn with_container(name: &str) -> Value {
    let mut pod = USUAL.opted_in.clone();
    pod["spec"]["containers"][0]["name"] = name.into();
    pod["metadata"]["annotations"]
        .as_object_mut()
        .expect("annotations")
        .remove(&format!("{ANNOTATION_PREFIX}container-names"));
    pod
}

impl Usual {
    fn new() -> Self {
        let around = Around::of(instrumentation("inst", usual_spec()));
        let opted_in = asking(&["java"], json!({}));
        let asks = |value: &str| {
            let mut pod = opted_in.clone();
            pod["metadata"]["annotations"][format!("{ANNOTATION_PREFIX}inject-java")] = value.into();
            pod
        };
        let injected = unstamped(&around.inject(&opted_in).pod);
        let cases = [
            (opted_in.clone(), &[][..]),
            (asks("missing"), &[]),
            (asks("false"), &[STATUS, LABEL]),
            (asking(&[], json!({})), &[STATUS, MESSAGE, LABEL]),
            (injected, &[STATUS, MESSAGE, LABEL]),
        ];
        let cases = cases.map(|(before, remains)| Case { after: around.inject(&before), before, remains });
        Self { around, opted_in, cases: cases.into() }
    }
}

impl Around {
    fn of(object: Value) -> Self {
        let mut surroundings = Surroundings::new([object]);
        surroundings.settings.stamp = true;
        let known = Known::of(&surroundings.objects, &DefaultImages::default());
        Self { surroundings, known }
    }

    fn inject(&self, pod: &Value) -> Injected {
        self.surroundings.inject_knowing(pod, &self.known.catalogue, &self.known.owners)
    }
}
