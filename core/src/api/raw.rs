//! Parts of the resource that go into a pod just as they were written.

use std::{borrow::Cow, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A JSON value with the schema of `T`, kept as it came.
///
/// Security contexts, resources, volume claims and the sources of variables
/// are copied into pods. Reading them into Kubernetes' types and writing them
/// out again would drop every field that the linked version does not know and
/// change how quantities are written.
pub struct Raw<T> {
    value: Value,
    schema: PhantomData<fn() -> T>,
}

impl<T> Raw<T> {
    /// The value as it came.
    pub fn value(&self) -> &Value {
        &self.value
    }
}

impl<T> Clone for Raw<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), schema: PhantomData }
    }
}

impl<T> std::fmt::Debug for Raw<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value.fmt(f)
    }
}

impl<T> Serialize for Raw<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for Raw<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self { value, schema: PhantomData })
    }
}

impl<T: JsonSchema> JsonSchema for Raw<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
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
