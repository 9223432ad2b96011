//! Why init containers copy an agent although image volumes were chosen.

use std::fmt;

use super::{
    cluster::Obstacle,
    shown::{LONGEST_TEXT, Short},
};

/// The object with an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum On {
    /// The pod.
    Pod,
    /// Its namespace.
    Namespace,
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pod => "the pod",
            Self::Namespace => "the namespace",
        })
    }
}

/// Why init containers copy an agent although image volumes were chosen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kept {
    /// The init containers write configuration, too.
    WritesConfiguration,
    /// The agent is copied into a claim.
    Claim {
        /// The language's field in the specification.
        field: String,
    },
    /// The agent cannot list a folder with this name.
    ExtensionFolder {
        /// The folder of the extension.
        dir: String,
    },
    /// `auto`, and a node of the pod might not mount the image.
    Cluster(Obstacle),
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WritesConfiguration => f.write_str("they also write the configuration of the web server"),
            Self::Claim { field } => write!(f, "spec.{field}.volumeClaimTemplate is set"),
            Self::ExtensionFolder { dir } => {
                let dir = Short { what: dir, longest: LONGEST_TEXT };
                write!(
                    f,
                    "the Java agent cannot be given the folder \"{dir}\" of an extension; valid: a path without spaces, \
                     quotes and commas"
                )
            }
            Self::Cluster(obstacle) => obstacle.fmt(f),
        }
    }
}
