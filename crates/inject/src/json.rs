//! JSON text and values.

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::{Value, value::RawValue};

/// Serialises a value that always can be serialised.
pub fn of<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("strings, numbers and JSON values are JSON")
}

/// The maximum depth of what is copied from a pod; no field of a container is nested as deeply. The reader of a
/// pod skips what it does not know at any depth, but a patch has to be readable as a whole.
const DEEPEST: usize = 64;

/// The value of a part of the pod, to be copied.
///
/// # Errors
/// If it is nested too deeply, or has a string that is not Unicode. The reader of a pod skips such parts.
pub fn value_of(raw: &RawValue) -> Result<Value, serde_json::Error> {
    serde_json::from_str(raw.get()).and_then(bounded)
}

/// Parses a field that may be copied; for `deserialize_with`.
///
/// # Errors
/// As [`value_of`].
pub fn copied<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Option::<Value>::deserialize(deserializer)?.map(bounded).transpose()
}

fn bounded<E: Error>(value: Value) -> Result<Value, E> {
    if is_deeper(&value, DEEPEST) {
        return Err(E::custom(format_args!("nested more than {DEEPEST} levels deep")));
    }
    Ok(value)
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let below = |value: &Value| levels == 0 || is_deeper(value, levels - 1);
    match value {
        Value::Array(items) => items.iter().any(below),
        Value::Object(members) => members.values().any(below),
        _ => false,
    }
}
