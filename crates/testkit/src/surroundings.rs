//! Injection into a pod by the crate of the decision alone, without the program.

use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject as inject;
use otel_webhook_inject::{
    Finding, InitResources, Input, Outcome, Settings, catalogue::Catalogue, language::LanguageSet, pod::Pod,
    workload::Owners,
};
use serde_json::Value;

use crate::{
    known::Known,
    objects::{NAMESPACE, instrumentation, items},
};

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
        let known = Known::of(&self.objects, &self.images);
        self.inject_knowing(before, &known.catalogue, owners.unwrap_or(&known.owners))
    }

    /// The same with what the program or another source made of the objects.
    pub fn inject_knowing(&self, before: &Value, catalogue: &Catalogue, owners: &dyn Owners) -> Injected {
        let text = before.to_string();
        let pod = Pod::parse(&text).expect("a pod");
        let input = Input { pod: &pod, namespace: &self.namespace, catalogue, settings: &self.settings };
        let outcome = inject::build(inject::decide(input), owners);
        let mut after = before.clone();
        json_patch::patch(&mut after, &outcome.patch.operations()).expect("the patch applies");
        Injected { pod: after, outcome }
    }
}

/// One Instrumentation and nothing else around a pod.
pub fn with(spec: Value) -> Surroundings {
    Surroundings::new([instrumentation("inst", spec)])
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
            format!("{}{container}: {}", finding.name(), finding.reason.code())
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

/// The decision on a pod of a namespace, with every language on.
pub fn review(catalogue: &Catalogue, owners: &dyn Owners, namespace: &str, pod: &Value) -> Outcome {
    let text = pod.to_string();
    decide(catalogue, owners, namespace, &Pod::parse(&text).expect("a pod"))
}

/// The same for a pod that is parsed.
pub fn decide(catalogue: &Catalogue, owners: &dyn Owners, namespace: &str, pod: &Pod<'_>) -> Outcome {
    let settings = Settings { languages: LanguageSet::all(), ..Settings::default() };
    let input = Input { pod, namespace, catalogue, settings: &settings };
    inject::build(inject::decide(input), owners)
}
