//! What is looked at, and what shows.

use std::collections::HashMap;

use serde_json::Value;

use otel_webhook_inject::{Outcome, pod::OwnerReference, template::Around};

/// A numbered difference: its number in docs/injection.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference(pub u8);

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "D{}", self.0)
    }
}

/// A pod, what came of it, and what that came of.
pub struct Case<'c> {
    /// The pod before.
    pub pod: &'c Value,
    /// What the core finds.
    pub outcome: &'c Outcome,
    /// The same with the init containers' resources as the operator sets them.
    pub exact: &'c Outcome,
    /// What is known around it.
    pub around: &'c Around<'c>,
    /// The owner that a pod of a template will have.
    pub owner: Option<&'c OwnerReference<'static>>,
    /// Instrumentations as they are stored, by namespace and name.
    pub instrumentations: &'c HashMap<(String, String), Value>,
}
