//! Objects as lists show them.

use serde_json::Value;

use crate::cli::check::registration::Labels;

/// Lists leave the type of their items out.
pub fn typed(mut object: Value, api_version: &str, kind: &str) -> Value {
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object
}

/// The labels of an object.
pub fn labels(object: &Value) -> Labels {
    let all = object["metadata"]["labels"].as_object().into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// A text; empty for what is none.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
