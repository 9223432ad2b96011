//! As much of a pod as tells how the webhook runs in it. The whole of a pod's
//! type would be half a megabyte of the program, for a dozen of its fields.

use k8s_openapi::{api::core::v1, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Resource;
use serde::Deserialize;

/// A pod.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = v1::Pod)]
pub struct Pod {
    /// Name, namespace, and when it came and goes.
    pub metadata: ObjectMeta,
    /// What it runs.
    pub spec: Option<PodSpec>,
}

/// What a pod runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// Its account; none for `default`.
    pub service_account_name: Option<String>,
    /// Its containers.
    pub containers: Vec<Container>,
    /// Its volumes.
    #[serde(default)]
    pub volumes: Vec<Volume>,
}

/// What a container runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// What is run in place of the image's own program.
    pub command: Vec<String>,
    /// The arguments.
    pub args: Vec<String>,
    /// The variables.
    pub env: Vec<Variable>,
    /// Where volumes are.
    pub volume_mounts: Vec<Mount>,
}

/// A variable.
#[derive(Clone, Debug, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, unless it comes from elsewhere.
    pub value: Option<String>,
}

/// Where a volume is.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// The volume's name.
    pub name: String,
    /// The folder.
    pub mount_path: String,
}

/// A volume.
#[derive(Clone, Debug, Deserialize)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// The Secret that it is.
    pub secret: Option<SecretVolume>,
    /// What it is put together from.
    pub projected: Option<Projected>,
}

/// A Secret as a volume.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretVolume {
    /// The Secret's name.
    pub secret_name: Option<String>,
}

/// A volume that is put together.
#[derive(Clone, Debug, Deserialize)]
pub struct Projected {
    /// From what.
    #[serde(default)]
    pub sources: Vec<Source>,
}

/// A part of a volume that is put together.
#[derive(Clone, Debug, Deserialize)]
pub struct Source {
    /// The Secret that it is.
    pub secret: Option<SecretSource>,
}

/// A Secret as a part of a volume.
#[derive(Clone, Debug, Deserialize)]
pub struct SecretSource {
    /// The Secret's name.
    #[serde(default)]
    pub name: String,
}
