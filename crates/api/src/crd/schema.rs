//! The schema of the CRD, parsed for validation.
//!
//! The program contains the generated file; a test fails if it differs from
//! what the types generate.

use std::{collections::BTreeMap, sync::LazyLock};

use regex::Regex;
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny},
};

use super::patterns::{PATTERNS, Pattern};
use crate::version::Version;

/// The CRD as JSON, as `otel-webhook crd` prints it.
pub(super) const CRD: &str = include_str!("crd.json");

/// The schema of a value. An unknown keyword is an error, so that none is ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Schema {
    /// The type; `None` for a quantity.
    #[serde(rename = "type")]
    pub kind: Option<Kind>,
    /// Whether it is a quantity, which is a number or a string.
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub is_quantity: bool,
    /// Members of an object, by their names.
    pub properties: BTreeMap<Box<str>, Schema>,
    /// The schema of other members, if any are allowed.
    pub additional_properties: Option<Box<Schema>>,
    /// Whether it may have other members as well; what they are is not checked here.
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub preserves_unknown: bool,
    /// Required members.
    pub required: Vec<Box<str>>,
    /// The maximum number of members.
    pub max_properties: Option<usize>,
    /// The items of a list.
    pub items: Option<Box<Schema>>,
    /// The maximum number of items.
    pub max_items: Option<usize>,
    /// The valid strings.
    #[serde(rename = "enum")]
    pub choice: Option<Vec<Box<str>>>,
    /// The pattern of a string.
    #[serde(deserialize_with = "known")]
    pub pattern: Option<&'static Compiled>,
    /// The minimum number of characters.
    pub min_length: usize,
    /// The maximum number of characters.
    pub max_length: Option<usize>,
    /// The minimum.
    pub minimum: Option<i64>,
    /// The maximum.
    pub maximum: Option<i64>,
    /// `int32` or `int64`.
    pub format: Option<Box<str>>,

    // For people, or for the API server only.
    #[serde(rename = "description")]
    _description: IgnoredAny,
    #[serde(rename = "nullable")]
    _nullable: IgnoredAny,
    #[serde(rename = "anyOf")]
    _any_of: IgnoredAny,
    #[serde(rename = "x-kubernetes-validations")]
    _rules: IgnoredAny,
    #[serde(rename = "x-kubernetes-list-type")]
    _list_type: IgnoredAny,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    _list_keys: IgnoredAny,
}

/// The types of fields.
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

/// A compiled pattern.
#[derive(Debug)]
pub struct Compiled {
    /// The pattern with its words.
    pub pattern: &'static Pattern,
    /// The regular expression.
    pub regex: Regex,
}

/// The CRD down to the schema of `spec`.
#[derive(Deserialize)]
struct Crd {
    spec: CrdSpec,
}

#[derive(Deserialize)]
struct CrdSpec {
    versions: [CrdVersion; 1],
}

#[derive(Deserialize)]
struct CrdVersion {
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
    let crd: Crd = serde_json::from_str(CRD).expect("a test parses the CRD");
    let [version] = crd.spec.versions;
    version.schema.whole.properties.spec
});

static COMPILED: LazyLock<Vec<Compiled>> = LazyLock::new(|| {
    let compile = |pattern: &'static Pattern| Compiled {
        pattern,
        regex: Regex::new(pattern.regex).expect("a test compiles every pattern"),
    };
    PATTERNS.iter().map(compile).collect()
});

static BETA_SPEC: LazyLock<Schema> =
    LazyLock::new(|| Schema::deserialize(&*super::versions::BETA_SPEC).expect("a test parses it"));

/// The schema of `spec`.
pub fn spec() -> &'static Schema {
    spec_in(Version::V1alpha1)
}

/// The schema of `spec` in a version.
pub fn spec_in(version: Version) -> &'static Schema {
    match version {
        Version::V1alpha1 => &SPEC,
        Version::V1beta1 => &BETA_SPEC,
    }
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
    use super::*;

    #[cfg(feature = "schema")]
    #[test]
    fn the_schema_in_the_program_is_the_one_that_the_types_generate() {
        let carried: serde_json::Value = serde_json::from_str(CRD).expect("JSON");
        assert!(
            carried == crate::crd::of_types(),
            "crates/api/src/crd/crd.json is out of date; run `make generate`"
        );
    }

    #[test]
    fn every_keyword_and_pattern_is_known() {
        let sampler = &spec().properties["sampler"].properties["type"];
        assert_eq!((sampler.kind, sampler.choice.as_ref().map(Vec::len)), (Some(Kind::String), Some(9)));
        let exporter = &spec_in(Version::V1beta1).properties["envConfig"].properties["exporter"];
        assert_eq!(exporter.properties["protocol"].choice.as_ref().map(Vec::len), Some(3));
    }
}
