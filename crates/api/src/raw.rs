//! Parts of the resource that are copied into a pod unchanged.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A JSON value, kept unchanged.
///
/// Security contexts, resources, volume claims and the sources of variables
/// are copied into pods. Parsing them into the types of Kubernetes and serialising them
/// again would drop every field that the linked version does not know and
/// change the form of quantities. Their schema is set where they are used.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Raw(Value);

impl Raw {
    /// The unchanged value.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

/// Whether a value is empty: null, or an object or list that contains only
/// empty values.
///
/// Typed clients store `{"metadata":{},"spec":{"resources":{}}}` for a claim
/// template that is not set; it means the same as its absence.
pub fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().all(is_hollow),
        Value::Array(items) => items.iter().all(is_hollow),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
