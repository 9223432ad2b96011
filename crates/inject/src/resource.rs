//! `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` (docs/injection.md, "Resource attributes").

use std::borrow::Cow;

use super::{attribute_value, image, pod::Pod, settings::InitResources, workload::Workload};
use otel_webhook_api::{RESOURCE_PREFIX, sizes::AgentSizes};

/// The variable with the resource attributes.
pub const RESOURCE_ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
/// The variable with the pod's name, from the downward API.
pub const POD_NAME: &str = "OTEL_RESOURCE_ATTRIBUTES_POD_NAME";
/// The variable with the pod's UID, from the downward API.
pub const POD_UID: &str = "OTEL_RESOURCE_ATTRIBUTES_POD_UID";
/// The variable with the node's name, from the downward API.
pub const NODE_NAME: &str = "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME";

/// The common data of all containers of the pod.
#[derive(Debug)]
pub struct PodFacts<'p> {
    /// The pod.
    pub pod: &'p Pod<'p>,
    /// Namespace of the request.
    pub namespace: &'p str,
    /// The owner chain.
    pub workload: Workload,
    /// How the resources of init containers are set.
    pub init_resources: InitResources,
    /// The sizes of agents in their volumes.
    pub sizes: &'p AgentSizes,
}

/// The resource attributes of an Instrumentation.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Attributes of every target.
    pub attributes: Vec<(String, String)>,
    /// Whether UIDs are added as attributes.
    pub with_uids: bool,
    /// Whether labels set the service's name and version.
    pub use_labels: bool,
}

/// The attributes of one container; later sources override earlier ones.
#[derive(Debug)]
pub struct Attributes<'p> {
    entries: Vec<(Cow<'p, str>, Cow<'p, str>)>,
    /// Whether values are percent-encoded, for agents that decode them (D34).
    pub is_encoded: bool,
    /// Whether the node's name is read from the downward API.
    pub node_name_open: bool,
    /// Whether the pod's UID is read from the downward API.
    pub uid_open: bool,
    /// The service's name.
    pub service_name: String,
}

impl<'p> Attributes<'p> {
    /// All attributes of a container.
    pub fn of(facts: &'p PodFacts<'p>, policy: &'p Policy, container: &str, image: &'p str) -> Self {
        let mut all = Self {
            entries: Vec::with_capacity(24),
            is_encoded: true,
            node_name_open: false,
            uid_open: false,
            service_name: String::new(),
        };
        all.collect(facts, policy, container);
        all.service_name = service_name(facts, policy, &all, container);
        all.refer_to_downward_api(policy);
        if let Some(version) = service_version(facts.pod, policy, image) {
            all.set("service.version", version);
        }
        all
    }

    /// The value of an attribute.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.entries.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| &**value)
    }

    /// The attributes that are not in `present`, sorted, as comma-separated `k=v`. Those with a key that cannot
    /// be written are skipped.
    pub fn missing_from(&mut self, present: &Keys) -> String {
        self.entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let mut text = String::with_capacity(384);
        for (key, value) in &self.entries {
            if present.has(key) || !attribute_value::is_key(key) {
                continue;
            }
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(key);
            text.push('=');
            if self.is_encoded {
                attribute_value::push_encoded(&mut text, value);
            } else {
                text.push_str(value);
            }
        }
        text
    }

    /// The sources in order, except for the version, which needs the image.
    fn collect(&mut self, facts: &'p PodFacts<'p>, policy: &'p Policy, container: &str) {
        let pod = facts.pod;
        for (key, value) in &policy.attributes {
            self.set(key.as_str(), value.as_str());
        }
        self.set_known("k8s.namespace.name", facts.namespace);
        self.set_known("k8s.container.name", container.to_owned());
        self.set_known("k8s.pod.name", &*pod.metadata.name);
        self.set_known("k8s.pod.uid", &*pod.metadata.uid);
        self.set_known("k8s.node.name", &*pod.spec.node_name);
        // The owners were looked up for all languages of the pod; the
        // Instrumentation of another one may add UIDs, and this one may not.
        let wanted = |key: &str| policy.with_uids || key.strip_suffix(".uid").is_none();
        for (key, value) in facts.workload.attributes.iter().filter(|(key, _)| wanted(key)) {
            self.set_known(key, value.as_str());
        }
        self.set_known("service.instance.id", instance_id(facts, container));
        for (key, value) in pod.metadata.annotations.iter() {
            match key.strip_prefix(RESOURCE_PREFIX) {
                None | Some("service.name") => {}
                Some(attribute) => self.set(attribute, value),
            }
        }
        self.set_known("service.namespace", service_namespace(facts));
    }

    fn refer_to_downward_api(&mut self, policy: &Policy) {
        self.set("k8s.pod.name", "$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME)");
        let open = |value: Option<&str>| value.is_none_or(str::is_empty);
        self.uid_open = policy.with_uids && open(self.get("k8s.pod.uid"));
        if self.uid_open {
            self.set("k8s.pod.uid", "$(OTEL_RESOURCE_ATTRIBUTES_POD_UID)");
        }
        self.node_name_open = open(self.get("k8s.node.name"));
        if self.node_name_open {
            self.set("k8s.node.name", "$(OTEL_RESOURCE_ATTRIBUTES_NODE_NAME)");
        }
    }

    fn set(&mut self, key: impl Into<Cow<'p, str>>, value: impl Into<Cow<'p, str>>) {
        let (key, value) = (key.into(), value.into());
        match self.entries.iter_mut().find(|(name, _)| *name == key) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((key, value)),
        }
    }

    fn set_known(&mut self, key: &'static str, value: impl Into<Cow<'p, str>>) {
        let value = value.into();
        if !value.is_empty() {
            self.set(key, value);
        }
    }
}

/// The keys of a value of `OTEL_RESOURCE_ATTRIBUTES`.
#[derive(Debug, Default)]
pub struct Keys(Vec<String>);

impl Keys {
    /// Parses the keys of a value. The value of an attribute may contain an `=` (D7).
    pub fn of(value: Option<&str>) -> Self {
        let pairs = value.unwrap_or_default().split(',');
        let keys = pairs.filter_map(|pair| pair.trim().split_once('='));
        Self(keys.map(|(key, _)| key.trim_end().to_owned()).collect())
    }

    /// Whether it contains a key.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|present| present == key)
    }
}

/// An annotation of the pod that sets a resource attribute; empty is treated as not set.
fn annotation<'p>(pod: &'p Pod<'_>, attribute: &str) -> Option<&'p str> {
    let mut annotations = pod.metadata.annotations.iter();
    let found = annotations.find(|(key, _)| key.strip_prefix(RESOURCE_PREFIX) == Some(attribute));
    found.map(|(_, value)| value).filter(|value| !value.is_empty())
}

fn label<'p>(pod: &'p Pod<'_>, policy: &Policy, keys: &[&str]) -> Option<&'p str> {
    if !policy.use_labels {
        return None;
    }
    let mut values = keys.iter().filter_map(|key| pod.metadata.labels.get(key));
    values.find(|value| !value.is_empty())
}

fn instance_id(facts: &PodFacts<'_>, container: &str) -> String {
    match annotation(facts.pod, "service.instance.id") {
        Some(id) => id.to_owned(),
        None if facts.namespace.is_empty() || container.is_empty() => String::new(),
        None => [facts.namespace, ".$(", POD_NAME, ").", container].concat(),
    }
}

fn service_namespace<'p>(facts: &'p PodFacts<'p>) -> &'p str {
    annotation(facts.pod, "service.namespace").unwrap_or(facts.namespace)
}

fn service_version<'p>(pod: &'p Pod<'_>, policy: &Policy, image: &'p str) -> Option<&'p str> {
    annotation(pod, "service.version")
        .or_else(|| label(pod, policy, &["app.kubernetes.io/version"]))
        .or_else(|| image::version(image))
}

/// Attributes that name the service; the first known one is used (OpenTelemetry's
/// conventions for Kubernetes). The container's own attributes do not override the
/// owner (D19).
const NAMED_AFTER: [&str; 7] = [
    "k8s.deployment.name",
    "k8s.replicaset.name",
    "k8s.statefulset.name",
    "k8s.daemonset.name",
    "k8s.cronjob.name",
    "k8s.job.name",
    "k8s.pod.name",
];

fn service_name(facts: &PodFacts<'_>, policy: &Policy, all: &Attributes<'_>, container: &str) -> String {
    let labels = ["app.kubernetes.io/instance", "app.kubernetes.io/name"];
    let said = annotation(facts.pod, "service.name").or_else(|| label(facts.pod, policy, &labels));
    let owned = || {
        let known = |key: &&str| all.get(key).filter(|name| !name.is_empty());
        let deployment = known(&NAMED_AFTER[0]);
        let controller = || facts.workload.controller.as_deref();
        deployment.or_else(controller).or_else(|| NAMED_AFTER.iter().find_map(known))
    };
    said.or_else(owned).unwrap_or(container).to_owned()
}
