//! The input of a decision.

use super::{catalogue::Catalogue, pod::Pod, settings::Settings};

/// Everything that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Input<'p> {
    /// The pod.
    pub pod: &'p Pod<'p>,
    /// Namespace of the request.
    pub namespace: &'p str,
    /// Namespaces and their Instrumentations.
    pub catalogue: &'p Catalogue,
    /// The settings of the installation.
    pub settings: &'p Settings,
}
