//! Parts of the resource that are copied into a pod unchanged.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use crate::crd::{patterns::VARIABLE, pod::Source, rules};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A JSON value, kept unchanged.
///
/// Security contexts, resources, volume claims and the sources of variables
/// are copied into pods. Parsing them into the types of Kubernetes and serialising them
/// again would drop every field that the linked version does not know and
/// change the form of quantities. Their schema is set where they are used.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Raw(Value);

impl Raw {
    /// The unchanged value.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

/// Whether a value is empty: null, or an object or list that contains only
/// empty values.
///
/// Typed clients store `{"metadata":{},"spec":{"resources":{}}}` for a claim
/// template that is not set; it means the same as its absence.
pub fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().all(is_hollow),
        Value::Array(items) => items.iter().all(is_hollow),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether a text is the name of a directive.
pub fn is_directive_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// An environment variable, as in a container.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = rules::one_value())))]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Name of the variable.
    #[cfg_attr(feature = "schema", schemars(length(min = 1), regex(pattern = VARIABLE)))]
    pub name: String,
    /// Value of the variable; `$(NAME)` refers to a variable earlier in the list.
    pub value: Option<String>,
    /// Source of the value. Cannot be set together with `value`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Source>"))]
    pub value_from: Option<Raw>,
}

/// What happens to a variable that has a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// It keeps its value.
    #[default]
    Set,
    /// The agent's value is added at the end.
    Append,
    /// The agent's value is added at the beginning.
    Prepend,
}

impl Mode {
    /// The valid names.
    pub const NAMES: [&str; 3] = ["set", "append", "prepend"];

    /// Reads a name; an absent one is that of the default.
    pub fn parse(name: Option<&str>) -> Option<Self> {
        match name {
            None | Some("set") => Some(Self::Set),
            Some("append") => Some(Self::Append),
            Some("prepend") => Some(Self::Prepend),
            Some(_) => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A query over labels (`LabelSelector` of `meta/v1`): all requirements have to match.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must have these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Further requirements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_expressions: Option<Vec<LabelSelectorRequirement>>,
}

/// One requirement on a label.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct LabelSelectorRequirement {
    /// The label's key.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Values for `In` and `NotIn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_that_of_one_mode() {
        for name in Mode::NAMES {
            assert_eq!(Mode::parse(Some(name)).map(Mode::name), Some(name));
        }
        assert_eq!((Mode::parse(None), Mode::parse(Some("Append"))), (Some(Mode::Set), None));
    }
}
