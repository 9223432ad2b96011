//! The nodes of the cluster, as far as image volumes depend on them.
//!
//! `auto` mounts an image only where every node that the pod may run on is known to be able to: by the versions of the
//! API server, its kubelet and its container runtime. Pod security levels need no check: any API server that is new
//! enough accepts image volumes at the level `restricted`.

mod node;
mod placement;
mod version;

use std::{collections::BTreeMap, fmt, sync::Arc};

pub use node::{Need, Node, Unfit};
pub use placement::{Expression, Placement, Term};
pub use version::Version;

use super::{pod::Spec, shown::shown};

/// What is known of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The version of the API server.
    pub server: Option<Box<str>>,
    /// The nodes by name.
    pub nodes: BTreeMap<Box<str>, Arc<Node>>,
    /// Whether all nodes are known.
    pub is_listed: bool,
}

/// Why `auto` does not mount an image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// The nodes are not known.
    NodesUnknown,
    /// The API server is too old, or its version is not known.
    Server {
        /// Its version.
        version: String,
        /// The least version.
        least: Version,
    },
    /// The pod may run on no node that there is now.
    NoNode,
    /// A node might not mount it.
    Node {
        /// Its name.
        name: String,
        /// Why.
        unfit: Unfit,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodesUnknown => {
                f.write_str("the nodes are not known; see --watch-nodes of serve, and --nodes of explain")
            }
            Self::Server { version, least } => {
                write!(
                    f,
                    "the API server has version {}; image volumes need {least} or newer",
                    shown(version)
                )
            }
            Self::NoNode => {
                f.write_str("no present node matches the nodeSelector and the required node affinity")
            }
            Self::Node { name, unfit } => write!(f, "on node \"{}\" {unfit}", shown(name)),
        }
    }
}

/// Returns why not every node that a pod may run on is known to mount images; `None` if each is.
pub fn obstacle(cluster: Option<&Cluster>, pod: &Spec<'_>, need: Need) -> Option<Obstacle> {
    let Some(cluster) = cluster.filter(|cluster| cluster.is_listed) else {
        return Some(Obstacle::NodesUnknown);
    };
    let server = cluster.server.as_deref().unwrap_or("unknown");
    if Version::parse(server).is_none_or(|version| version < need.least) {
        return Some(Obstacle::Server { version: server.to_owned(), least: need.least });
    }
    let placement = Placement::of(pod);
    let mut is_any = false;
    for (name, node) in &cluster.nodes {
        // In a large cluster most nodes are fit, and only the others have to be matched.
        let unfit = node.unfit(need);
        if is_any && unfit.is_none() || !placement.allows(name, node) {
            continue;
        }
        if let Some(unfit) = unfit {
            return Some(Obstacle::Node { name: name.to_string(), unfit });
        }
        is_any = true;
    }
    (!is_any).then_some(Obstacle::NoNode)
}

#[cfg(test)]
mod tests;
