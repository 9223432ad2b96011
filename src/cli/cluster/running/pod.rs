//! The fields of a pod of the webhook that are read. The complete type would add half a megabyte to the program.

use k8s_openapi::{api::core::v1, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Resource;
use serde::Deserialize;

use crate::cli::cluster::account::Account;

/// A pod.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = v1::Pod)]
pub struct Pod {
    /// Name, namespace, and the times of its creation and deletion.
    pub metadata: ObjectMeta,
    /// Its specification.
    pub spec: Option<PodSpec>,
    /// Its status.
    pub status: Option<PodStatus>,
}

/// The status of a pod.
#[derive(Clone, Debug, Deserialize)]
pub struct PodStatus {
    /// Its conditions.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// A condition of a pod.
#[derive(Clone, Debug, Deserialize)]
pub struct Condition {
    /// Its type.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
}

/// The specification of a pod.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// Its service account; none for `default`.
    pub service_account_name: Option<String>,
    /// Its containers.
    pub containers: Vec<Container>,
    /// Its volumes.
    #[serde(default)]
    pub volumes: Vec<Volume>,
}

impl PodSpec {
    /// Returns the service account of the pod.
    pub fn account(&self, namespace: &str) -> Account {
        let name = self.service_account_name.clone().unwrap_or_else(|| "default".to_owned());
        Account { namespace: namespace.to_owned(), name }
    }
}

/// A container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// The command.
    pub command: Vec<String>,
    /// The arguments.
    pub args: Vec<String>,
    /// The environment variables.
    pub env: Vec<Variable>,
    /// The volume mounts.
    pub volume_mounts: Vec<Mount>,
}

/// An environment variable.
#[derive(Clone, Debug, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, unless it has a source.
    pub value: Option<String>,
}

/// A volume mount.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// The volume's name.
    pub name: String,
    /// The path.
    pub mount_path: String,
}

/// A volume.
#[derive(Clone, Debug, Deserialize)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Its Secret.
    pub secret: Option<SecretVolume>,
    /// Its projected sources.
    pub projected: Option<Projected>,
}

/// A Secret as a volume.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretVolume {
    /// The Secret's name.
    pub secret_name: Option<String>,
}

/// A projected volume.
#[derive(Clone, Debug, Deserialize)]
pub struct Projected {
    /// Its sources.
    #[serde(default)]
    pub sources: Vec<Source>,
}

/// A source of a projected volume.
#[derive(Clone, Debug, Deserialize)]
pub struct Source {
    /// Its Secret.
    pub secret: Option<SecretSource>,
}

/// A Secret in a projected volume.
#[derive(Clone, Debug, Deserialize)]
pub struct SecretSource {
    /// The Secret's name.
    #[serde(default)]
    pub name: String,
}
