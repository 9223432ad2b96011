//! Parts of the resource that go into a pod just as they were written.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A JSON value, kept as it came.
///
/// Security contexts, resources, volume claims and the sources of variables
/// are copied into pods. Reading them into Kubernetes' types and writing them
/// out again would drop every field that the linked version does not know and
/// change how quantities are written. Their schema is said where they are used.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Raw(Value);

impl Raw {
    /// The value as it came.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

/// Whether a value says nothing: null, or an object or list with nothing in it
/// but such values.
///
/// Typed clients store `{"metadata":{},"spec":{"resources":{}}}` for a claim
/// template that nobody set; it means the same as its absence.
pub fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().all(is_hollow),
        Value::Array(items) => items.iter().all(is_hollow),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
