//! Names of objects.

use serde_json::Value;

/// The name in an object's metadata.
pub fn name_of(object: &Value) -> Box<str> {
    object["metadata"]["name"].as_str().unwrap_or_default().into()
}
