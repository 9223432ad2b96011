//! What a decision depends on and the user who asks may not read. A state that depends on it is unconfirmed.

use otel_webhook_inject::Finding;

/// What is not known about a cluster.
pub trait Doubts {
    /// Separates the findings about a new pod that are certain from the languages for which the result is unknown.
    fn separate(&self, namespace: &str, findings: Vec<Finding>) -> Separated;

    /// Returns why the present configurations are unknown, such as the default images of the webhook's flags; none
    /// if they are known.
    fn configurations(&self) -> Option<&str>;
}

/// Findings, separated by what is known.
#[derive(Debug, Default)]
pub struct Separated {
    /// The findings that are certain.
    pub certain: Vec<Finding>,
    /// The languages for which the result is unknown, with the reason.
    pub unknown: Vec<(&'static str, String)>,
    /// Why it is unknown whether the other languages are opted in to; none if they are not.
    pub others: Option<String>,
}

/// Everything is known.
#[derive(Clone, Copy, Debug)]
pub struct NoDoubts;

impl Doubts for NoDoubts {
    fn separate(&self, _: &str, findings: Vec<Finding>) -> Separated {
        Separated { certain: findings, ..Separated::default() }
    }

    fn configurations(&self) -> Option<&str> {
        None
    }
}
