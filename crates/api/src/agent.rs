//! Agents that an Instrumentation describes itself, for languages without their own field (D38).

#[cfg(feature = "schema")]
use crate::{
    Delivery,
    crd::{
        patterns::{AGENT_NAME, FOLDER, IMAGE, VARIABLE},
        pod::{Claim, ListedResources},
        rules,
    },
    values::Mode,
};
#[cfg(feature = "schema")]
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::{Deserialize, Serialize};

use super::{language::LanguageSettings, values::Raw};

/// The field of the specification with the agents.
pub const AGENTS_FIELD: &str = "agents";

/// The placeholder in values of variables that stands for the mount path of the agent.
pub const MOUNT_PATH: &str = "$(mountPath)";

/// An agent for a language without its own field.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = rules::agent())))]
#[cfg_attr(feature = "schema", schemars(transform = rules::required(&["name", "image", "directory"])))]
#[serde(rename_all = "camelCase", default)]
pub struct GenericAgent {
    /// Name of the agent, by which pods opt in: `inject-agent: NAME`.
    // With the prefix of the volume it has 63 characters at most.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 22), regex(pattern = AGENT_NAME)))]
    pub name: String,
    /// Image with the agent. To be copied by an init container, it has to contain `cp`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1), regex(pattern = IMAGE)))]
    pub image: String,
    /// Folder in the image; its content is copied, or it is mounted.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 256), regex(pattern = FOLDER)))]
    pub directory: String,
    /// Where the agent is mounted in targets; by default `/otel-auto-instrumentation-NAME`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 256), regex(pattern = FOLDER)))]
    pub mount_path: Option<String>,
    /// Environment variables of targets; they override those of `spec.env`.
    #[cfg_attr(feature = "schema", schemars(length(max = 64), extend("x-kubernetes-list-type" = "map")))]
    #[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-list-map-keys" = ["name"])))]
    pub env: Option<Vec<AgentVariable>>,
    /// How the agent gets into pods; overrides `spec.delivery`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = Delivery::NAMES)))]
    pub delivery: Option<String>,
    /// Size limit of the agent's volume; by default 200Mi.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Quantity>"))]
    pub volume_limit_size: Option<Raw>,
    /// Claim of an ephemeral volume, used instead of an emptyDir.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Claim>"))]
    pub volume_claim_template: Option<Raw>,
    /// Resources of the init container.
    #[cfg_attr(feature = "schema", schemars(with = "Option<ListedResources>"))]
    pub resource_requirements: Option<Raw>,
}

/// A variable that an agent sets or extends.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = rules::agent_variable())))]
#[cfg_attr(feature = "schema", schemars(transform = rules::required(&["name", "value"])))]
#[serde(rename_all = "camelCase", default)]
pub struct AgentVariable {
    /// Name of the variable.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 256), regex(pattern = VARIABLE)))]
    pub name: String,
    /// Its value. `$(mountPath)` is replaced by the mount path of the agent; `$(NAME)` refers to a variable earlier in
    /// the list of the container.
    #[cfg_attr(feature = "schema", schemars(length(max = 4096)))]
    pub value: String,
    /// What happens if the variable has a value: `set` (default) keeps that, `append` and `prepend` add to it.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("enum" = Mode::NAMES)))]
    pub mode: Option<String>,
    /// What separates the two values, such as `:` or a space. Required for `append` and `prepend`.
    // A rule takes a null of a field that may be null for a value. Of others the API server drops it.
    #[cfg_attr(feature = "schema", schemars(with = "String", length(max = 16)))]
    pub separator: Option<String>,
}

impl GenericAgent {
    /// The mount path in targets.
    pub fn path(&self) -> String {
        let own = self.mount_path.as_deref().filter(|path| !path.is_empty());
        own.map_or_else(|| default_mount_path(&self.name), str::to_owned)
    }
}

/// The mount path of an agent that sets none.
pub fn default_mount_path(name: &str) -> String {
    ["/otel-auto-instrumentation-", name].concat()
}

impl<'s> From<&'s GenericAgent> for LanguageSettings<'s> {
    fn from(agent: &'s GenericAgent) -> Self {
        Self {
            image: Some(&agent.image),
            volume_limit_size: agent.volume_limit_size.as_ref().map(Raw::value),
            volume_claim_template: agent.volume_claim_template.as_ref().map(Raw::value),
            resources: agent.resource_requirements.as_ref().map(Raw::value),
            delivery: agent.delivery.as_deref(),
            ..Self::default()
        }
    }
}

/// Replaces the placeholder of the mount path. As in Kubernetes, `$$` is a literal `$`, which the kubelet writes: so
/// `$$(mountPath)` stays.
pub fn with_mount_path(value: &str, path: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(value.len() + path.len()), value);
    while let Some(at) = rest.find('$') {
        let (before, found) = rest.split_at(at);
        text.push_str(before);
        let taken = if found.starts_with("$$") {
            text.push_str("$$");
            2
        } else if found.starts_with(MOUNT_PATH) {
            text.push_str(path);
            MOUNT_PATH.len()
        } else {
            text.push('$');
            1
        };
        rest = &found[taken..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placeholder_is_replaced_unless_it_is_escaped() {
        for (value, expected) in [
            ("$(mountPath)/a:$(mountPath)/b", "/m/a:/m/b"),
            ("$$(mountPath)", "$$(mountPath)"),
            ("$$$(mountPath)", "$$/m"),
            ("$(HOME)/$(mountPath", "$(HOME)/$(mountPath"),
            ("é$", "é$"),
        ] {
            assert_eq!(with_mount_path(value, "/m"), expected, "{value}");
        }
    }
}
