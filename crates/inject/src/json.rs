//! JSON text and values.

use serde::Serialize;
use serde_json::{Value, value::RawValue};

/// The JSON of a value that cannot fail to be one.
pub fn of<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("strings, numbers and JSON values are JSON")
}

/// The value of a part of the pod.
///
/// # Errors
/// Where it is nested more deeply than can be read.
pub fn value_of(raw: &RawValue) -> Result<Value, serde_json::Error> {
    serde_json::from_str(raw.get())
}
