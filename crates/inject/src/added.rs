//! What is added to a pod: containers and mounts.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::env::{Change, Entry, Env};

/// A container to add.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewContainer<'p> {
    /// Its name.
    pub name: Cow<'p, str>,
    /// Its image.
    pub image: Cow<'p, str>,
    /// Its command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<Cow<'p, str>>,
    /// The arguments of the command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Cow<'p, str>>,
    /// Sources of further variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<Value>,
    /// Its variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<Listed<Entry<'p>>>,
    /// Its mounts.
    pub volume_mounts: Vec<Listed<NewMount<'p>>>,
    /// Its requests, limits and claims.
    pub resources: Cow<'p, Value>,
    /// Its pull policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<Cow<'p, str>>,
    /// Its security context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<Cow<'p, Value>>,
    /// `Always` for an init container that runs until the pod ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<&'static str>,
}

/// An entry of a list of an added container.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Listed<T> {
    /// It is copied from a container of the pod with every field.
    Copied(Value),
    /// It is added.
    Added(T),
}

impl<'p> NewContainer<'p> {
    /// A container with a name, an image and resources.
    pub fn new(
        name: impl Into<Cow<'p, str>>,
        image: impl Into<Cow<'p, str>>,
        resources: Cow<'p, Value>,
    ) -> Self {
        Self {
            name: name.into(),
            image: image.into(),
            command: Vec::new(),
            args: Vec::new(),
            env_from: Vec::new(),
            env: Vec::new(),
            volume_mounts: Vec::new(),
            resources,
            image_pull_policy: None,
            security_context: None,
            restart_policy: None,
        }
    }
}

/// Variables for an added container. Those of a container of the pod are copied
/// from its own list if they are unchanged.
pub fn variables<'p>(env: Env<'p>, own: &[Value]) -> Vec<Listed<Entry<'p>>> {
    let unchanged = |entry: &Entry<'_>| {
        let index = entry.origin.filter(|_| entry.change == Change::None);
        index.and_then(|index| own.get(index).cloned())
    };
    let listed = |entry| unchanged(&entry).map_or(Listed::Added(entry), Listed::Copied);
    env.into_entries().into_iter().map(listed).collect()
}

/// The mounts of an added container: copies, then added ones.
pub fn mounts<'p>(
    own: Vec<Value>,
    added: impl IntoIterator<Item = NewMount<'p>>,
) -> Vec<Listed<NewMount<'p>>> {
    own.into_iter().map(Listed::Copied).chain(added.into_iter().map(Listed::Added)).collect()
}

/// The pull policy that is set, if one is.
pub fn pull_policy(policy: Option<&str>) -> Option<Cow<'_, str>> {
    policy.filter(|policy| !policy.is_empty()).map(Cow::Borrowed)
}

/// An init container to add.
#[derive(Debug)]
pub struct NewInitContainer<'p> {
    /// The index of the original init container that follows it; the length of the list for the end.
    pub before: usize,
    /// The container.
    pub container: NewContainer<'p>,
}

/// A mount to add.
#[derive(Clone, Debug, Serialize)]
pub struct NewMount<'p> {
    /// The volume's name.
    #[serde(rename = "name")]
    pub volume: Cow<'p, str>,
    /// The mount path.
    #[serde(rename = "mountPath")]
    pub path: Cow<'p, str>,
    /// The mounted folder of the volume, if not the whole.
    #[serde(rename = "subPath", skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<&'p str>,
    /// Whether it is read-only.
    #[serde(rename = "readOnly", skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

impl<'p> NewMount<'p> {
    /// A mount of a volume at a path.
    pub fn new(volume: impl Into<Cow<'p, str>>, path: impl Into<Cow<'p, str>>) -> Self {
        Self { volume: volume.into(), path: path.into(), sub_path: None, read_only: false }
    }
}
