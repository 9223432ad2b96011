//! The part of a pod that injection reads: a slim view of the raw JSON.
//!
//! The parser skips other fields, and they are never changed. The
//! lists of a container are kept as raw text until the container is known to
//! be a target.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::json;
use super::text::{List, Map, Object, Text, object_or_default, optional_object};

/// The restart policy of a container that is started again whenever it ends.
pub const ALWAYS: &str = "Always";

/// A pod, or a pod template.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pod<'a> {
    /// The length of its JSON, in bytes; in a review that of the whole review, which is hardly more.
    #[serde(skip)]
    pub size: usize,
    /// The pod's metadata.
    #[serde(borrow, deserialize_with = "metadata")]
    pub metadata: Metadata<'a>,
    /// The pod's specification.
    #[serde(deserialize_with = "object_or_default")]
    pub spec: Spec<'a>,
}

/// The metadata that injection reads.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata<'a> {
    /// Whether the pod has metadata at all; it is optional in a template.
    #[serde(skip)]
    pub is_there: bool,
    /// Name; empty for a pod with a generated name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// The prefix of a generated name.
    pub generate_name: Text<'a>,
    /// Namespace; that of the request is used if they differ.
    pub namespace: Text<'a>,
    /// UID; set by the API server after admission.
    pub uid: Text<'a>,
    /// Labels.
    pub labels: Map<'a>,
    /// Annotations.
    pub annotations: Map<'a>,
    /// Owners, the controller among them.
    pub owner_references: List<OwnerReference<'a>>,
}

/// One owner reference.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference<'a> {
    /// Group and version of the owner.
    #[serde(borrow)]
    pub api_version: Text<'a>,
    /// Kind of the owner.
    pub kind: Text<'a>,
    /// Name of the owner.
    pub name: Text<'a>,
    /// UID of the owner.
    pub uid: Text<'a>,
    /// Whether this owner is the controller.
    pub controller: Option<bool>,
}

/// The specification that injection reads.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec<'a> {
    /// Regular containers.
    #[serde(borrow)]
    pub containers: List<Container<'a>>,
    /// Init containers and native sidecars.
    pub init_containers: List<Container<'a>>,
    /// Volumes.
    pub volumes: List<Volume<'a>>,
    /// The restart policy of the containers; empty for `Always`.
    #[serde(borrow)]
    pub restart_policy: Text<'a>,
    /// Whether the containers share a process namespace.
    pub share_process_namespace: Option<bool>,
    /// Whether the pod uses the process namespace of its node.
    #[serde(rename = "hostPID")]
    pub host_pid: Option<bool>,
    /// The node, if it is already known.
    pub node_name: Text<'a>,
    /// The node selector.
    pub node_selector: Map<'a>,
    /// The affinity.
    #[serde(borrow)]
    pub affinity: Option<&'a RawValue>,
    /// The operating system of the pod.
    #[serde(deserialize_with = "optional_object")]
    pub os: Option<Os<'a>>,
    /// Security context of the pod, which its containers inherit.
    #[serde(borrow)]
    pub security_context: Option<&'a RawValue>,
    /// Resources of the whole pod.
    #[serde(borrow)]
    pub resources: Option<&'a RawValue>,
    /// The overhead of the pod.
    #[serde(borrow)]
    pub overhead: Option<&'a RawValue>,
    /// Resource claims for the containers.
    pub resource_claims: List<Named<'a>>,
    /// The ServiceAccount; empty for the namespace's default one.
    pub service_account_name: Text<'a>,
    /// The same by its deprecated name.
    pub service_account: Text<'a>,
    /// Whether the ServiceAccount's token is mounted, if the pod says so.
    pub automount_service_account_token: Option<bool>,
    /// The priority class.
    pub priority_class_name: Text<'a>,
    /// The deadline of the pod, for quotas only.
    #[serde(borrow)]
    pub active_deadline_seconds: Option<&'a RawValue>,
}

/// `spec.os`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Os<'a> {
    /// `linux` or `windows`.
    #[serde(borrow)]
    pub name: Text<'a>,
}

/// An object with a name; the rest is not read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Named<'a> {
    /// Its name.
    #[serde(borrow)]
    pub name: Text<'a>,
}

/// A container of the pod.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container<'a> {
    /// Name, unique in the pod.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Image reference.
    pub image: Text<'a>,
    /// Pull policy.
    pub image_pull_policy: Text<'a>,
    /// `Always` makes an init container a native sidecar.
    pub restart_policy: Text<'a>,
    /// Variables; see [`Container::variables`].
    #[serde(borrow)]
    pub env: Option<&'a RawValue>,
    /// Sources of further variables.
    #[serde(borrow)]
    pub env_from: Option<&'a RawValue>,
    /// Mounts; see [`Container::mounts`].
    #[serde(borrow)]
    pub volume_mounts: Option<&'a RawValue>,
    /// Security context.
    #[serde(borrow)]
    pub security_context: Option<&'a RawValue>,
    /// Requests, limits and claims.
    #[serde(borrow)]
    pub resources: Option<&'a RawValue>,
    /// A probe; see [`Container::probed_paths`].
    #[serde(borrow)]
    pub liveness_probe: Option<&'a RawValue>,
    /// Another one.
    #[serde(borrow)]
    pub readiness_probe: Option<&'a RawValue>,
    /// The third one.
    #[serde(borrow)]
    pub startup_probe: Option<&'a RawValue>,
}

/// A variable of a container.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Variable<'a> {
    /// Name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Value; empty if not set.
    pub value: Text<'a>,
    /// The source of the value.
    #[serde(deserialize_with = "json::copied")]
    pub value_from: Option<Value>,
}

/// A mount of a container.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mount<'a> {
    /// The volume's name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// The mount path.
    pub mount_path: Text<'a>,
    /// The mounted file or folder of the volume; empty for the whole volume.
    pub sub_path: Text<'a>,
}

/// A volume of the pod.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume<'a> {
    /// Name, unique in the pod.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// The Secret of the volume.
    #[serde(deserialize_with = "optional_object")]
    pub secret: Option<SecretSource<'a>>,
    /// The ConfigMap of the volume.
    #[serde(deserialize_with = "optional_object")]
    pub config_map: Option<Named<'a>>,
    /// The image of the volume.
    #[serde(borrow)]
    pub image: Option<&'a RawValue>,
    /// The claim of an ephemeral volume.
    #[serde(borrow)]
    pub ephemeral: Option<&'a RawValue>,
}

/// `volumes[].secret`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretSource<'a> {
    /// The Secret's name.
    #[serde(borrow)]
    pub secret_name: Text<'a>,
}

/// One entry of `envFrom`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvFrom<'a> {
    /// The prefix of each name.
    #[serde(borrow)]
    pub prefix: Text<'a>,
    /// The ConfigMap with the variables.
    #[serde(deserialize_with = "optional_object")]
    pub config_map_ref: Option<Named<'a>>,
    /// The Secret with the variables.
    #[serde(deserialize_with = "optional_object")]
    pub secret_ref: Option<Named<'a>>,
}

/// A list of a container that cannot be parsed.
pub type Unreadable = serde_json::Error;

impl Spec<'_> {
    /// Whether the pod ends when its containers have, as that of a Job.
    pub fn ends(&self) -> bool {
        !["", ALWAYS].contains(&&*self.restart_policy)
    }
}

impl<'a> Container<'a> {
    /// The container's variables.
    ///
    /// # Errors
    /// If `env` is not a list of variables.
    pub fn variables(&self) -> Result<Vec<Variable<'a>>, Unreadable> {
        list(self.env)
    }

    /// The container's mounts.
    ///
    /// # Errors
    /// If `volumeMounts` is not a list of mounts.
    pub fn mounts(&self) -> Result<Vec<Mount<'a>>, Unreadable> {
        list(self.volume_mounts)
    }

    /// A list of the container, each item as raw text.
    ///
    /// # Errors
    /// If it is not a list.
    pub fn items(raw: Option<&'a RawValue>) -> Result<Vec<&'a RawValue>, Unreadable> {
        let Some(raw) = raw else { return Ok(Vec::new()) };
        serde_json::from_str::<Option<_>>(raw.get()).map(Option::unwrap_or_default)
    }

    /// Sources of further variables.
    ///
    /// # Errors
    /// If `envFrom` is not a list of sources.
    pub fn sources(&self) -> Result<Vec<EnvFrom<'a>>, Unreadable> {
        list(self.env_from)
    }

    /// The paths of its HTTP probes, each once. What cannot be read is no path.
    pub fn probed_paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for probe in [self.liveness_probe, self.readiness_probe, self.startup_probe].into_iter().flatten() {
            let probe: Value = serde_json::from_str(probe.get()).unwrap_or_default();
            if let Some(request) = probe["httpGet"].as_object() {
                let path = request.get("path").and_then(Value::as_str).filter(|path| !path.is_empty());
                let path = path.unwrap_or("/");
                // The kubelet adds the slash.
                let path = if path.starts_with('/') { path.to_owned() } else { ["/", path].concat() };
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        paths
    }

    /// Whether this is a native sidecar: an init container with `restartPolicy: Always`.
    pub fn is_sidecar(&self) -> bool {
        &*self.restart_policy == ALWAYS
    }
}

impl<'a> Pod<'a> {
    /// Parses a pod.
    ///
    /// # Errors
    /// If the text is not a valid pod.
    pub fn parse(json: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<Object<Self>>(json).map(|object| Self { size: json.len(), ..object.0 })
    }

    /// Whether it is a mirror pod: the API server's copy of a static pod.
    pub fn is_mirror(&self) -> bool {
        self.metadata.annotations.get("kubernetes.io/config.mirror").is_some()
    }
}

fn list<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Result<Vec<T>, Unreadable> {
    match raw {
        None => Ok(Vec::new()),
        Some(raw) => serde_json::from_str::<List<T>>(raw.get()).map(|list| list.0),
    }
}

fn metadata<'de: 'a, 'a, D>(deserializer: D) -> Result<Metadata<'a>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let metadata: Option<Metadata<'a>> = optional_object(deserializer)?;
    Ok(metadata.map(|metadata| Metadata { is_there: true, ..metadata }).unwrap_or_default())
}
