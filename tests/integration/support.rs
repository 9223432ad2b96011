//! Pods and Instrumentations for tests, and what the core makes of them.

use otel_webhook::{
    api::defaults::DefaultImages,
    inject::{self, Input, Settings, language::LanguageSet, pod::Pod},
    store::Writer,
};
use serde_json::Value;

/// The namespace of pods and Instrumentations.
pub const NAMESPACE: &str = "shop";

/// What is known around a pod.
pub struct Surroundings {
    /// Namespaces, Instrumentations and owners.
    pub objects: Vec<Value>,
    /// The request's namespace.
    pub namespace: String,
    /// What the installation decides; every language is on, and no stamp.
    pub settings: Settings,
    /// What is taken where an Instrumentation names no image.
    pub images: DefaultImages,
}

impl Surroundings {
    /// Around a pod of the usual namespace.
    pub fn new(objects: impl IntoIterator<Item = Value>) -> Self {
        let settings = Settings {
            languages: LanguageSet::all(),
            stamp: false,
            safe_to_evict: false,
            ..Settings::default()
        };
        Self {
            objects: objects.into_iter().collect(),
            namespace: NAMESPACE.to_owned(),
            settings,
            images: DefaultImages::default(),
        }
    }

    /// What the core makes of a pod.
    pub fn inject(&self, before: &Value) -> Injected {
        let mut writer = Writer::new(self.images.clone());
        for object in &self.objects {
            writer.put(object);
        }
        writer.publish();
        let snapshot = writer.store().snapshot();
        let text = before.to_string();
        let pod = Pod::parse(&text).expect("a pod");
        let input = Input {
            pod: &pod,
            namespace: &self.namespace,
            catalogue: &snapshot.catalogue,
            settings: &self.settings,
        };
        let outcome = inject::build(inject::decide(input), &snapshot.owners);
        let mut after = before.clone();
        json_patch::patch(&mut after, &outcome.operations()).expect("the patch applies");
        Injected { pod: after }
    }
}

/// A pod after the core, and what it says about it.
pub struct Injected {
    /// The pod.
    pub pod: Value,
}

/// The items of a list; none where it is no list.
pub fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Where two values differ, one line each.
pub fn compare(path: &str, got: &Value, expected: &Value) -> Vec<String> {
    match (got, expected) {
        _ if got == expected => Vec::new(),
        (Value::Object(one), Value::Object(other)) => {
            let mut keys: Vec<_> = one.keys().chain(other.keys()).collect();
            keys.sort();
            keys.dedup();
            let pairs = keys.into_iter().map(|key| (key, &got[key], &expected[key]));
            pairs.flat_map(|(key, one, other)| compare(&format!("{path}/{key}"), one, other)).collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other).enumerate();
            pairs.flat_map(|(at, (one, other))| compare(&format!("{path}/{at}"), one, other)).collect()
        }
        _ => vec![format!("{path}\n      got      {got}\n      expected {expected}")],
    }
}
