//! The result for a pod.

use super::{finding::Finding, patch::Patch, reason::Reason};

/// What came of a pod.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// RFC 6902 operations; none where the pod stays as it is.
    pub patch: Patch,
    /// What came of each language that was asked for, by container.
    pub findings: Vec<Finding>,
    /// Whether nothing goes in and the pod carries the stamp that says so: it is reviewed once more.
    pub is_stamped: bool,
}

impl Outcome {
    /// Whether anything was asked for, and not only switched off.
    pub fn is_asked(&self) -> bool {
        self.findings.iter().any(|finding| !matches!(finding.reason, Reason::SwitchedOff { .. }))
    }

    /// The findings that count, so that a pod counts once however often the API server sends it.
    ///
    /// A pod that is found injected counts as that alone: what else it asks for was counted by the
    /// review that injected it. One that nothing went into is known by its stamp, which decides nothing else.
    pub fn counted(&self) -> impl Iterator<Item = &Finding> {
        let found = |finding: &Finding| matches!(finding.reason, Reason::AlreadyInjected { .. });
        let is_repeated = self.is_stamped || self.findings.iter().any(found);
        self.findings.iter().filter(move |finding| !is_repeated || found(finding))
    }
}
