//! `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` (docs/reference/injection.md, "Resource attributes").

use std::{borrow::Cow, collections::BTreeMap, rc::Rc};

use super::{attribute_value, held::held, image, pod::Pod, settings::InitResources, workload::Workload};
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
#[allow(clippy::struct_excessive_bools, reason = "each is a field of the specification")]
pub struct Policy {
    /// Attributes of every target.
    pub attributes: Vec<(String, String)>,
    /// Whether UIDs are added as attributes.
    pub with_uids: bool,
    /// Whether labels set the service's name and version.
    pub use_labels: bool,
    /// Whether no `k8s.*` attribute is derived.
    pub without_k8s: bool,
    /// Whether no `service.*` attribute is derived.
    pub without_service: bool,
}

held!(Policy: attributes; with_uids, use_labels, without_k8s, without_service);

/// The attributes that are the same for all containers of a pod; later sources override earlier ones.
///
/// They are collected once for each language: a pod may have thousands of annotations and of containers.
#[derive(Debug)]
pub struct PodAttributes<'p> {
    entries: BTreeMap<&'p str, Cow<'p, str>>,
    /// The service's name; `None` if it is that of the container.
    service_name: Option<String>,
    /// The service's version; `None` if it is that of the image.
    version: Option<&'p str>,
    /// The attributes of single containers that annotations of the pod set.
    said: Vec<&'static str>,
    node_name_open: bool,
    uid_open: bool,
    /// Whether `k8s.*` and `service.*` attributes of containers are derived.
    derived: [bool; 2],
    /// Whether the variable of the service's name is added.
    names_service: bool,
}

/// The attributes of one container.
#[derive(Debug)]
pub struct Attributes<'p> {
    of_pod: Rc<PodAttributes<'p>>,
    /// Those of the container, which override those of the pod.
    own: Vec<(&'static str, Cow<'p, str>)>,
    /// Whether values are percent-encoded, for agents that decode them (D34).
    pub is_encoded: bool,
    /// Whether the node's name is read from the downward API.
    pub node_name_open: bool,
    /// Whether the pod's UID is read from the downward API.
    pub uid_open: bool,
    /// The service's name.
    pub service_name: String,
}

const CONTAINER: &str = "k8s.container.name";
const INSTANCE: &str = "service.instance.id";
const VERSION: &str = "service.version";

impl<'p> PodAttributes<'p> {
    /// Collects the attributes of all containers.
    pub fn of(facts: &PodFacts<'p>, policy: &'p Policy) -> Self {
        let has = |attribute: &str| annotations(facts.pod).any(|(key, _)| key == attribute);
        let mut all = Self {
            entries: BTreeMap::new(),
            service_name: None,
            version: said_version(facts.pod, policy),
            said: [CONTAINER, INSTANCE].into_iter().filter(|attribute| has(attribute)).collect(),
            node_name_open: false,
            uid_open: false,
            derived: [!policy.without_k8s, !policy.without_service],
            names_service: !policy.without_service || annotation(facts.pod, "service.name").is_some(),
        };
        all.collect(facts, policy);
        all.service_name = service_name(facts, policy, &all);
        all.refer_to_downward_api(policy);
        all.drop_derived(facts, policy);
        all
    }

    /// Removes what was derived and is not wanted, and restores what it had overridden.
    fn drop_derived(&mut self, facts: &PodFacts<'p>, policy: &'p Policy) {
        let is_dropped = |key: &str| {
            policy.without_k8s && key.starts_with("k8s.")
                || policy.without_service && key.starts_with("service.")
        };
        if policy.without_k8s {
            (self.node_name_open, self.uid_open) = (false, false);
        }
        self.entries.retain(|key, _| !is_dropped(key));
        for (key, value) in policy.attributes.iter().filter(|(key, _)| is_dropped(key)) {
            self.entries.insert(key, value.into());
        }
        let said = annotations(facts.pod).filter(|(key, _)| is_dropped(key) && *key != "service.name");
        self.entries.extend(said.map(|(key, value)| (key, value.into())));
    }

    /// The sources in order, except for what differs between containers.
    fn collect(&mut self, facts: &PodFacts<'p>, policy: &'p Policy) {
        let pod = facts.pod;
        for (key, value) in &policy.attributes {
            self.entries.insert(key, value.into());
        }
        self.set_known("k8s.namespace.name", facts.namespace);
        self.set_known("k8s.pod.name", &*pod.metadata.name);
        self.set_known("k8s.pod.uid", &*pod.metadata.uid);
        self.set_known("k8s.node.name", &*pod.spec.node_name);
        // The owners were looked up for all languages of the pod; the
        // Instrumentation of another one may add UIDs, and this one may not.
        let wanted = |key: &str| policy.with_uids || key.strip_suffix(".uid").is_none();
        for (key, value) in facts.workload.attributes.iter().filter(|(key, _)| wanted(key)) {
            self.set_known(key, value.clone());
        }
        for (attribute, value) in annotations(pod).filter(|(attribute, _)| *attribute != "service.name") {
            self.entries.insert(attribute, value.into());
        }
        self.set_known("service.namespace", service_namespace(facts));
    }

    fn refer_to_downward_api(&mut self, policy: &Policy) {
        self.set_known("k8s.pod.name", "$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME)");
        let open = |value: Option<&str>| value.is_none_or(str::is_empty);
        self.uid_open = policy.with_uids && open(self.get("k8s.pod.uid"));
        if self.uid_open {
            self.set_known("k8s.pod.uid", "$(OTEL_RESOURCE_ATTRIBUTES_POD_UID)");
        }
        self.node_name_open = open(self.get("k8s.node.name"));
        if self.node_name_open {
            self.set_known("k8s.node.name", "$(OTEL_RESOURCE_ATTRIBUTES_NODE_NAME)");
        }
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(|value| &**value)
    }

    fn set_known(&mut self, key: &'static str, value: impl Into<Cow<'p, str>>) {
        let value = value.into();
        if !value.is_empty() {
            self.entries.insert(key, value);
        }
    }
}

impl<'p> Attributes<'p> {
    /// All attributes of a container.
    pub fn of(of_pod: &Rc<PodAttributes<'p>>, namespace: &str, container: &str, image: &'p str) -> Self {
        let mut own: Vec<(&'static str, Cow<'p, str>)> = Vec::with_capacity(3);
        let [with_k8s, with_service] = of_pod.derived;
        if with_k8s && !of_pod.said.contains(&CONTAINER) && !container.is_empty() {
            own.push((CONTAINER, container.to_owned().into()));
        }
        if with_service && !of_pod.said.contains(&INSTANCE) && !namespace.is_empty() && !container.is_empty()
        {
            own.push((INSTANCE, [namespace, ".$(", POD_NAME, ").", container].concat().into()));
        }
        let version = of_pod.version.or_else(|| image::version(image)).filter(|_| with_service);
        own.extend(version.map(|version| (VERSION, version.into())));
        Self {
            own,
            is_encoded: true,
            node_name_open: of_pod.node_name_open,
            uid_open: of_pod.uid_open,
            service_name: of_pod.service_name.clone().unwrap_or_else(|| container.to_owned()),
            of_pod: Rc::clone(of_pod),
        }
    }

    /// Whether the service's name is set as a variable.
    pub fn names_service(&self) -> bool {
        self.of_pod.names_service
    }

    /// The value of an attribute.
    pub fn get(&self, key: &str) -> Option<&str> {
        let own = self.own.iter().find(|(name, _)| *name == key);
        own.map(|(_, value)| &**value).or_else(|| self.of_pod.get(key))
    }

    /// All attributes, sorted by key.
    fn sorted(&self) -> Vec<(&str, &str)> {
        let is_own = |key: &str| self.own.iter().any(|(name, _)| *name == key);
        let of_pod = self.of_pod.entries.iter().map(|(key, value)| (*key, &**value));
        let own = self.own.iter().map(|(key, value)| (*key, &**value));
        let mut all: Vec<_> = of_pod.filter(|(key, _)| !is_own(key)).chain(own).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all
    }

    /// The attributes that are not in `present`, sorted, as comma-separated `k=v`. Those with a key that cannot
    /// be written are skipped.
    pub fn missing_from(&mut self, present: &Keys) -> String {
        let mut text = String::with_capacity(384);
        for (key, value) in self.sorted() {
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
}

/// The keys of a value of `OTEL_RESOURCE_ATTRIBUTES`, sorted.
#[derive(Debug, Default)]
pub struct Keys(Vec<String>);

impl Keys {
    /// Parses the keys of a value. The value of an attribute may contain an `=` (D7).
    pub fn of(value: Option<&str>) -> Self {
        let pairs = value.unwrap_or_default().split(',');
        let keys = pairs.filter_map(|pair| pair.trim().split_once('='));
        let mut keys: Vec<_> = keys.map(|(key, _)| key.trim_end().to_owned()).collect();
        keys.sort_unstable();
        Self(keys)
    }

    /// Adds other keys.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
        self.0.sort_unstable();
    }

    /// Whether it contains a key.
    pub fn has(&self, key: &str) -> bool {
        self.0.binary_search_by(|present| present.as_str().cmp(key)).is_ok()
    }
}

/// The annotations of the pod that set resource attributes.
fn annotations<'p>(pod: &'p Pod<'_>) -> impl Iterator<Item = (&'p str, &'p str)> {
    let all = pod.metadata.annotations.iter();
    all.filter_map(|(key, value)| Some((key.strip_prefix(RESOURCE_PREFIX)?, value)))
}

/// The annotation that sets a resource attribute; empty is treated as not set.
fn annotation<'p>(pod: &'p Pod<'_>, attribute: &str) -> Option<&'p str> {
    let found = annotations(pod).find(|(key, _)| *key == attribute);
    found.map(|(_, value)| value).filter(|value| !value.is_empty())
}

fn label<'p>(pod: &'p Pod<'_>, policy: &Policy, keys: &[&str]) -> Option<&'p str> {
    if !policy.use_labels {
        return None;
    }
    let mut values = keys.iter().filter_map(|key| pod.metadata.labels.get(key));
    values.find(|value| !value.is_empty())
}

fn service_namespace<'p>(facts: &PodFacts<'p>) -> &'p str {
    annotation(facts.pod, "service.namespace").unwrap_or(facts.namespace)
}

fn said_version<'p>(pod: &'p Pod<'_>, policy: &Policy) -> Option<&'p str> {
    annotation(pod, VERSION).or_else(|| label(pod, policy, &["app.kubernetes.io/version"]))
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

fn service_name(facts: &PodFacts<'_>, policy: &Policy, all: &PodAttributes<'_>) -> Option<String> {
    let labels = ["app.kubernetes.io/instance", "app.kubernetes.io/name"];
    let said = annotation(facts.pod, "service.name").or_else(|| label(facts.pod, policy, &labels));
    let owned = || {
        let known = |key: &&str| all.get(key).filter(|name| !name.is_empty());
        let deployment = known(&NAMED_AFTER[0]);
        let controller = || facts.workload.controller.as_deref();
        deployment.or_else(controller).or_else(|| NAMED_AFTER.iter().find_map(known))
    };
    said.or_else(owned).map(str::to_owned)
}
