//! Objects of lists.

use serde_json::Value;

use crate::registration::Labels;
use otel_webhook_api::ANNOTATION_PREFIX;
use otel_webhook_inject::language::LANGUAGES;

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

/// Returns the languages that a pod itself opts in to or out of, regardless of its namespace.
pub fn own_languages(pod: &Value) -> Vec<&'static str> {
    let asks = |key: &str| {
        let key = format!("{ANNOTATION_PREFIX}{key}");
        ["annotations", "labels"].iter().any(|entries| pod["metadata"][entries][&key].is_string())
    };
    let own = LANGUAGES.into_iter().filter(|language| asks(language.inject));
    own.map(|language| language.name).collect()
}

/// Returns a string; empty if it is another value.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
