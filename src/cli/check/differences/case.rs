//! The input of the rules, and their result.

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

/// A pod, the decision about it, and what the decision depends on.
pub struct Case<'c> {
    /// The pod before injection.
    pub pod: &'c Value,
    /// The findings.
    pub outcome: &'c Outcome,
    /// The findings if init containers have the resources that the operator sets.
    pub exact: &'c Outcome,
    /// What the decision depends on.
    pub around: &'c Around<'c>,
    /// The owner that a pod of a template will have.
    pub owner: Option<&'c OwnerReference<'static>>,
    /// The stored Instrumentations, by namespace and name.
    pub instrumentations: &'c HashMap<(String, String), Value>,
}
