//! A pod as the API server has it, seen with the eyes of injection.

use serde_json::Value;

use crate::objects::items;

/// The name of Java's init container and its volume.
pub const AGENT: &str = "opentelemetry-auto-instrumentation-java";

/// The variables that are added to a target, whatever the Instrumentation
/// says; in order.
pub const VARIABLES: [&str; 7] = [
    "OTEL_NODE_IP",
    "OTEL_POD_IP",
    "JAVA_TOOL_OPTIONS",
    "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES_POD_NAME",
    "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",
];

/// What came of a creation.
#[derive(Debug)]
pub struct Created {
    /// The pod.
    pub pod: Value,
    /// What kubectl printed on standard error: the warnings.
    pub warnings: String,
}

impl Created {
    /// One that somebody else created.
    pub fn found(pod: Value) -> Self {
        Self { pod, warnings: String::new() }
    }

    /// The names of the init containers.
    pub fn init_containers(&self) -> Vec<&str> {
        items(&self.pod["spec"]["initContainers"]).map(name).collect()
    }

    /// An init container or container by its name.
    pub fn container(&self, wanted: &str) -> &Value {
        let spec = &self.pod["spec"];
        let mut all = items(&spec["initContainers"]).chain(items(&spec["containers"]));
        all.find(|container| name(container) == wanted)
            .unwrap_or_else(|| panic!("there is no container {wanted} in {}", self.pod))
    }

    /// The names of a container's variables, in order.
    pub fn variables(&self, container: &str) -> Vec<&str> {
        items(&self.container(container)["env"]).map(name).collect()
    }

    /// The value of a variable, empty where it is not there.
    pub fn variable(&self, container: &str, wanted: &str) -> &str {
        let mut variables = items(&self.container(container)["env"]);
        let found = variables.find(|variable| name(variable) == wanted);
        found.and_then(|variable| variable["value"].as_str()).unwrap_or_default()
    }

    /// One of the resource attributes, empty where it is not there.
    pub fn attribute(&self, container: &str, key: &str) -> &str {
        let all = self.variable(container, "OTEL_RESOURCE_ATTRIBUTES").split(',');
        let mut pairs = all.filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| *name == key).map_or("", |(_, value)| value)
    }

    /// Whether the Java agent is there, as a whole and once.
    pub fn is_injected(&self) -> bool {
        let agents = self.init_containers().into_iter().filter(|name| *name == AGENT).count();
        let volumes = items(&self.pod["spec"]["volumes"]).filter(|volume| name(volume) == AGENT).count();
        agents == 1 && volumes == 1
    }

    /// Whether nothing of an injection is there; what the product says about
    /// the pod does not count.
    pub fn is_untouched(&self) -> bool {
        let text = self.pod["spec"].to_string();
        !text.contains("opentelemetry-auto-instrumentation") && !text.contains("OTEL_")
    }

    /// What the product says about the pod in its own annotation.
    pub fn status(&self) -> &str {
        self.pod["metadata"]["annotations"]["otel-webhook/status"].as_str().unwrap_or_default()
    }

    /// The sentences on the pod, without line breaks.
    pub fn message(&self) -> String {
        let text = self.pod["metadata"]["annotations"]["otel-webhook/message"].as_str();
        text.unwrap_or_default().replace('\n', " ")
    }

    /// Its name.
    pub fn name(&self) -> &str {
        name(&self.pod["metadata"])
    }
}

/// The name of a list's item.
pub fn name(item: &Value) -> &str {
    item["name"].as_str().unwrap_or_default()
}
