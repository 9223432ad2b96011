//! The CRD's schema, read for validation.
//!
//! The program has it in itself as it was made last; a test fails when the
//! types say otherwise.

use std::{collections::BTreeMap, sync::LazyLock};

use regex::Regex;
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny},
};

use super::patterns::{PATTERNS, Pattern};

/// The CRD as JSON, as `otel-webhook crd` prints it.
pub(super) const CRD: &str = include_str!("crd.json");

/// What a value may be. A keyword that is not known here is an error, so that none is passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Schema {
    /// The type; none for a quantity.
    #[serde(rename = "type")]
    pub kind: Option<Kind>,
    /// Whether it is a quantity, which is a number or text.
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub is_quantity: bool,
    /// Members of an object, by their names.
    pub properties: BTreeMap<Box<str>, Schema>,
    /// Its other members, where it may have any.
    pub additional_properties: Option<Box<Schema>>,
    /// Members that have to be there.
    pub required: Vec<Box<str>>,
    /// The most members.
    pub max_properties: Option<usize>,
    /// The items of a list.
    pub items: Option<Box<Schema>>,
    /// The most items.
    pub max_items: Option<usize>,
    /// The only texts there are.
    #[serde(rename = "enum")]
    pub choice: Option<Vec<Box<str>>>,
    /// What a text looks like.
    #[serde(deserialize_with = "known")]
    pub pattern: Option<&'static Compiled>,
    /// The fewest characters.
    pub min_length: usize,
    /// The most characters.
    pub max_length: Option<usize>,
    /// The least number.
    pub minimum: Option<i64>,
    /// The greatest number.
    pub maximum: Option<i64>,
    /// `int32` or `int64`.
    pub format: Option<Box<str>>,

    // For people, or for the API server alone.
    #[serde(rename = "description")]
    _description: IgnoredAny,
    #[serde(rename = "nullable")]
    _nullable: IgnoredAny,
    #[serde(rename = "anyOf")]
    _any_of: IgnoredAny,
    #[serde(rename = "x-kubernetes-validations")]
    _rules: IgnoredAny,
}

/// The types that fields have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// An object.
    Object,
    /// A list.
    Array,
    /// Text.
    String,
    /// True or false.
    Boolean,
    /// A whole number.
    Integer,
}

/// A pattern, ready for use.
#[derive(Debug)]
pub struct Compiled {
    /// The pattern in words.
    pub pattern: &'static Pattern,
    /// What a text has to match.
    pub regex: Regex,
}

/// The way to the schema of `spec`.
#[derive(Deserialize)]
struct Crd {
    spec: CrdSpec,
}

#[derive(Deserialize)]
struct CrdSpec {
    versions: [Version; 1],
}

#[derive(Deserialize)]
struct Version {
    schema: Validation,
}

#[derive(Deserialize)]
struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    whole: Whole,
}

#[derive(Deserialize)]
struct Whole {
    properties: Parts,
}

#[derive(Deserialize)]
struct Parts {
    spec: Schema,
}

static SPEC: LazyLock<Schema> = LazyLock::new(|| {
    let crd: Crd = serde_json::from_str(CRD).expect("the CRD can be read; a test does");
    let [version] = crd.spec.versions;
    version.schema.whole.properties.spec
});

static COMPILED: LazyLock<Vec<Compiled>> = LazyLock::new(|| {
    let compile = |pattern: &'static Pattern| Compiled {
        pattern,
        regex: Regex::new(pattern.regex).expect("every pattern is tried in a test"),
    };
    PATTERNS.iter().map(compile).collect()
});

/// The schema of `spec`.
pub fn spec() -> &'static Schema {
    &SPEC
}

/// The pattern of quantities.
pub fn quantity() -> &'static Pattern {
    &PATTERNS[0]
}

fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'static Compiled>, D::Error> {
    let regex = String::deserialize(deserializer)?;
    let found = COMPILED.iter().find(|known| known.pattern.regex == regex);
    found.map(Some).ok_or_else(|| D::Error::custom(format!("the pattern {regex} is not in the table")))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[cfg(feature = "schema")]
    #[test]
    fn the_schema_in_the_program_is_what_the_types_say() {
        let carried: Value = serde_json::from_str(CRD).expect("JSON");
        assert!(
            carried == crate::crd::of_types(),
            "crates/api/src/crd/crd.json is out of date; run `make generate`"
        );
    }

    #[test]
    fn every_keyword_and_pattern_is_understood() {
        let sampler = &spec().properties["sampler"].properties["type"];
        assert_eq!((sampler.kind, sampler.choice.as_ref().map(Vec::len)), (Some(Kind::String), Some(9)));
    }
}
