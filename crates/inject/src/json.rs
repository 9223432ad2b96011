//! JSON text and values.

use serde::Serialize;
use serde_json::{Value, value::RawValue};

/// Serialises a value that always can be serialised.
pub fn of<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("strings, numbers and JSON values are JSON")
}

/// The value of a part of the pod.
///
/// # Errors
/// If it is nested too deeply.
pub fn value_of(raw: &RawValue) -> Result<Value, serde_json::Error> {
    serde_json::from_str(raw.get())
}
