//! Objects of lists.

use serde_json::Value;

use super::registration::Labels;

/// Adds the type, which lists omit from their items.
pub fn typed(mut object: Value, api_version: &str, kind: &str) -> Value {
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object
}

/// Returns the labels of an object.
pub fn labels(object: &Value) -> Labels {
    let all = object["metadata"]["labels"].as_object().into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Returns a string; empty if it is another value.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
