//! Pods and Instrumentations for tests, and what the core makes of them.

use std::collections::BTreeMap;

use otel_webhook::store::Writer;
use otel_webhook_api::{ANNOTATION_PREFIX, defaults::DefaultImages};
use otel_webhook_inject as inject;
use otel_webhook_inject::{
    Finding, InitResources, Input, Outcome, Settings, language::LanguageSet, pod::Pod, workload::Owners,
};
use serde_json::{Value, json};

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
            init_resources: InitResources::Exact,
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
        self.inject_with(before, None)
    }

    /// The same, with owners that are known in another way than as objects.
    pub fn inject_with(&self, before: &Value, owners: Option<&dyn Owners>) -> Injected {
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
        let outcome = inject::build(inject::decide(input), owners.unwrap_or(&snapshot.owners));
        let mut after = before.clone();
        json_patch::patch(&mut after, &outcome.patch).expect("the patch applies");
        Injected { pod: after, outcome }
    }
}

/// A LimitRange of the usual namespace, `bounds`, with this item.
pub fn limit_range(item: &Value) -> Value {
    let metadata = json!({"name": "bounds", "namespace": NAMESPACE});
    json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [item]}})
}

/// A quota of the usual namespace, `team`, of which nothing is used yet.
pub fn quota(hard: &Value) -> Value {
    let metadata = json!({"name": "team", "namespace": NAMESPACE});
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}})
}

/// A pod after the core, and what it says about it.
pub struct Injected {
    /// The pod.
    pub pod: Value,
    /// The patch and the findings.
    pub outcome: Outcome,
}

impl Injected {
    /// Whether the pod was left alone.
    pub fn is_unchanged(&self) -> bool {
        self.outcome.patch.is_empty()
    }

    /// What came of each language, by container: `java/app: Injected`.
    pub fn codes(&self) -> Vec<String> {
        let show = |finding: &Finding| {
            let container = finding.container.as_deref().map(|name| format!("/{name}")).unwrap_or_default();
            format!("{}{container}: {}", finding.language, finding.reason.code())
        };
        self.outcome.findings.iter().map(show).collect()
    }

    /// A container or init container by its name.
    pub fn container(&self, name: &str) -> Option<&Value> {
        let spec = &self.pod["spec"];
        items(&spec["containers"]).chain(items(&spec["initContainers"])).find(|one| one["name"] == name)
    }

    /// The variables of a container, in order.
    pub fn env(&self, container: &str) -> Vec<&Value> {
        let found = self.container(container).unwrap_or_else(|| panic!("no container {container}"));
        items(&found["env"]).collect()
    }

    /// The value of a variable of a container.
    pub fn value(&self, container: &str, variable: &str) -> Option<&str> {
        let found = self.env(container).into_iter().rfind(|one| one["name"] == variable);
        found.and_then(|one| one["value"].as_str())
    }

    /// Where a variable stands in a container's list.
    pub fn position(&self, container: &str, variable: &str) -> Option<usize> {
        self.env(container).iter().position(|one| one["name"] == variable)
    }

    /// The value of a resource attribute of a container.
    pub fn attribute(&self, container: &str, key: &str) -> Option<&str> {
        let all = self.value(container, "OTEL_RESOURCE_ATTRIBUTES")?;
        all.split(',').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
    }

    /// The names of what is in a list of the pod's specification.
    pub fn names(&self, list: &str) -> Vec<&str> {
        items(&self.pod["spec"][list]).filter_map(|one| one["name"].as_str()).collect()
    }
}

/// The items of a list; none where it is no list.
pub fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// An Instrumentation of the usual namespace.
pub fn instrumentation(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "opentelemetry.io/v1alpha1",
        "kind": "Instrumentation",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    })
}

/// One Instrumentation and nothing else around a pod.
pub fn with(spec: Value) -> Surroundings {
    Surroundings::new([instrumentation("inst", spec)])
}

/// A pod that has annotations under the prefix, with this specification.
pub fn pod(annotations: &[(&str, &str)], spec: Value) -> Value {
    let annotations: BTreeMap<_, _> =
        annotations.iter().map(|(name, value)| (format!("{ANNOTATION_PREFIX}{name}"), *value)).collect();
    json!({"metadata": {"generateName": "web-", "annotations": annotations}, "spec": spec})
}

/// A pod that asks for languages in its one container, `app`.
pub fn asking(languages: &[&str], container: Value) -> Value {
    let mut app = json!({"name": "app", "image": "example.com/app:1"});
    app.as_object_mut().expect("an object").extend(container.as_object().expect("an object").clone());
    let asks: Vec<_> = languages.iter().map(|language| format!("inject-{language}")).collect();
    let mut annotations: Vec<_> = asks.iter().map(|ask| (ask.as_str(), "true")).collect();
    annotations.extend([("container-names", "app"), ("otel-go-auto-target-exe", "/app")]);
    pod(&annotations, json!({"containers": [app]}))
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
