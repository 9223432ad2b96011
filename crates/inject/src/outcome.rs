//! The result for a pod.

use super::{finding::Finding, patch::Patch, reason::Reason};

/// The result for a pod.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// RFC 6902 operations; `None` if the pod is not changed.
    pub patch: Patch,
    /// The findings about each language that is opted in to or out of.
    pub findings: Vec<Finding>,
    /// Whether nothing is injected and the pod has the stamp for it already: this is a second review.
    pub is_stamped: bool,
}

impl Outcome {
    /// Whether anything was opted in to.
    pub fn is_asked(&self) -> bool {
        self.findings.iter().any(|finding| !matches!(finding.reason, Reason::SwitchedOff { .. }))
    }

    /// The findings for metrics, so that a pod is counted once, however often the API server sends it.
    ///
    /// A pod that is already injected is counted only as that: its other languages were counted by the
    /// review that injected it. A pod without injection is recognised by its stamp, which is used for
    /// nothing else.
    pub fn counted(&self) -> impl Iterator<Item = &Finding> {
        let found = |finding: &Finding| matches!(finding.reason, Reason::AlreadyInjected { .. });
        let is_repeated = self.is_stamped || self.findings.iter().any(found);
        self.findings.iter().filter(move |finding| !is_repeated || found(finding))
    }
}
