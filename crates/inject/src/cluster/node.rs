//! A node: its labels and versions.

use std::fmt;

use serde_json::Value;

use super::version::Version;
use crate::shown::shown;

/// What a language needs of a node.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Whether a folder of the image is mounted, by `subPath`.
    pub by_subpath: bool,
    /// The least version of API server and kubelet.
    pub least: Version,
}

/// A node, reduced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its labels, sorted by key.
    labels: Box<[(Box<str>, Box<str>)]>,
    kubelet: Box<str>,
    runtime: Box<str>,
}

/// Why a node might not mount an image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Unfit {
    /// Its kubelet is too old, or its version is not known.
    Kubelet {
        /// The version.
        version: String,
        /// The least version.
        least: Version,
    },
    /// Its container runtime is too old, or not one that is known to mount images.
    Runtime {
        /// Runtime and version.
        version: String,
        /// What is known to.
        valid: String,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kubelet { version, least } => {
                write!(f, "the kubelet has version {}; image volumes need {least} or newer", shown(version))
            }
            Self::Runtime { version, valid } => {
                write!(f, "the container runtime is {}; image volumes need {valid}", shown(version))
            }
        }
    }
}

/// A container runtime that mounts images.
struct Runtime {
    /// What its version begins with in a node's status.
    scheme: &'static str,
    name: &'static str,
    /// The least version.
    whole: Version,
    /// The least version for `subPath`.
    by_subpath: Version,
}

impl Runtime {
    fn least(&self, need: Need) -> Version {
        if need.by_subpath { self.by_subpath } else { self.whole }
    }
}

/// Others, such as cri-dockerd, are not known to mount images. containerd 2.1 ignores `subPath`, and mounts the whole
/// image.
const RUNTIMES: [Runtime; 2] = [
    Runtime {
        scheme: "containerd://",
        name: "containerd",
        whole: Version::new(2, 1),
        by_subpath: Version::new(2, 2),
    },
    Runtime {
        scheme: "cri-o://",
        name: "CRI-O",
        whole: Version::new(1, 33),
        by_subpath: Version::new(1, 33),
    },
];

impl Node {
    /// Reads a node; `None` for one that runs Windows, on which no injected pod runs.
    pub fn of(object: &Value) -> Option<Self> {
        let info = &object["status"]["nodeInfo"];
        let text = |field: &str| info[field].as_str().unwrap_or_default().into();
        let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
        let mut labels: Vec<(Box<str>, Box<str>)> =
            labels.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into()))).collect();
        labels.sort_unstable();
        let node = Self {
            labels: labels.into(),
            kubelet: text("kubeletVersion"),
            runtime: text("containerRuntimeVersion"),
        };
        (node.label("kubernetes.io/os") != Some("windows")).then_some(node)
    }

    /// The version of its kubelet.
    pub fn kubelet(&self) -> &str {
        &self.kubelet
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(own, _)| (**own).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// Why it might not mount an image.
    pub(super) fn unfit(&self, need: Need) -> Option<Unfit> {
        if !is_at_least(&self.kubelet, need.least) {
            return Some(Unfit::Kubelet { version: known(&self.kubelet), least: need.least });
        }
        let is_fit = RUNTIMES.iter().any(|runtime| {
            let version = self.runtime.strip_prefix(runtime.scheme);
            version.is_some_and(|version| is_at_least(version, runtime.least(need)))
        });
        let valid = || {
            let each = RUNTIMES.map(|runtime| format!("{} {} or newer", runtime.name, runtime.least(need)));
            each.join(", or ")
        };
        (!is_fit).then(|| Unfit::Runtime { version: known(&self.runtime), valid: valid() })
    }
}

fn is_at_least(version: &str, least: Version) -> bool {
    Version::parse(version).is_some_and(|version| version >= least)
}

fn known(version: &str) -> String {
    if version.is_empty() { "unknown".to_owned() } else { version.to_owned() }
}
