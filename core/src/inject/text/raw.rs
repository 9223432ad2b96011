//! JSON that is kept as it stands.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};
use serde_json::value::RawValue;

/// By this name the reader knows that text is asked for as it stands.
pub const NAME: &str = "otel_webhook::RawJson";

/// The text of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawJson<'a>(&'a str);

impl<'a> RawJson<'a> {
    /// The text.
    pub fn get(self) -> &'a str {
        self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(NAME, RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = RawJson<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    /// From the reader.
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<RawJson<'de>, E> {
        Ok(RawJson(text))
    }

    /// From `serde_json`.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawJson<'de>, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| RawJson(raw.get()))
    }
}
