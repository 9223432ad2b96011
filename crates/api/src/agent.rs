//! Agents that an Instrumentation describes itself, for languages without their own field (D38).

#[cfg(feature = "schema")]
use k8s_openapi::{
    api::core::v1::{PersistentVolumeClaimTemplate, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity,
};
use serde::{Deserialize, Serialize};

use super::{language::LanguageSettings, values::Raw};

/// The field of the specification with the agents.
pub const AGENTS_FIELD: &str = "agents";

/// The placeholder in values of variables that stands for the mount path of the agent.
pub const MOUNT_PATH: &str = "$(mountPath)";

/// An agent for a language without its own field.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct GenericAgent {
    /// Name of the agent, by which pods opt in: `inject-agent: NAME`.
    pub name: String,
    /// Image with the agent. To be copied by an init container, it has to contain `cp`.
    pub image: String,
    /// Folder in the image; its content is copied, or it is mounted.
    pub directory: String,
    /// Where the agent is mounted in targets; by default `/otel-auto-instrumentation-NAME`.
    pub mount_path: Option<String>,
    /// Environment variables of targets; they override those of `spec.env`.
    pub env: Option<Vec<AgentVariable>>,
    /// How the agent gets into pods; overrides `spec.delivery`.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::names::deliveries"))]
    pub delivery: Option<String>,
    /// Size limit of the agent's volume; by default 200Mi.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Quantity>"))]
    pub volume_limit_size: Option<Raw>,
    /// Claim of an ephemeral volume, used instead of an emptyDir.
    #[cfg_attr(feature = "schema", schemars(with = "Option<PersistentVolumeClaimTemplate>"))]
    pub volume_claim_template: Option<Raw>,
    /// Resources of the init container.
    #[cfg_attr(feature = "schema", schemars(with = "Option<ResourceRequirements>"))]
    pub resource_requirements: Option<Raw>,
}

/// A variable that an agent sets or extends.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct AgentVariable {
    /// Name of the variable.
    pub name: String,
    /// Its value. `$(mountPath)` is replaced by the mount path of the agent; `$(NAME)` refers to a variable earlier in
    /// the list of the container.
    pub value: String,
    /// What happens if the variable has a value: `set` (default) keeps that, `append` and `prepend` add to it.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::names::modes"))]
    pub mode: Option<String>,
    /// What separates the two values, such as `:` or a space. Required for `append` and `prepend`.
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
