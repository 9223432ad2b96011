//! One variable, and where it comes from.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::Value;

use crate::{held::held, json};

/// One variable in the list.
#[derive(Clone, Debug)]
pub struct Entry<'p> {
    /// Name; changed only for the original of an extended variable.
    pub name: Cow<'p, str>,
    /// Value; empty if `from` is set.
    pub value: Cow<'p, str>,
    /// Where the value comes from, if not from `value`.
    pub from: Option<Source<'p>>,
    /// Its index in the container's own list, if it is in it.
    pub origin: Option<usize>,
    /// Whether name or value differ from the container's own.
    pub change: Change,
    /// The source of the variable.
    pub set_by: SetBy,
}

/// The `valueFrom` of a variable.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Source<'p> {
    /// As the container or the Instrumentation has it.
    Json(Cow<'p, Value>),
    /// A field of the pod.
    Field(FieldRef),
}

impl Source<'_> {
    /// Whether the variable may be unset because its source is optional.
    pub fn is_optional(&self) -> bool {
        let Self::Json(from) = self else { return false };
        ["secretKeyRef", "configMapKeyRef", "fileKeyRef"].iter().any(|kind| from[kind]["optional"] == true)
    }
}

/// A reference to a field of the pod.
#[derive(Clone, Debug, Serialize)]
pub struct FieldRef {
    #[serde(rename = "fieldRef")]
    field: FieldPath,
}

#[derive(Clone, Debug, Serialize)]
struct FieldPath {
    #[serde(rename = "fieldPath")]
    path: &'static str,
}

/// The source of a variable; earlier ones override later ones (D13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SetBy {
    /// The container itself, or several sources if it was extended.
    Container,
    /// The language's part of an Instrumentation.
    Language,
    /// The part of an Instrumentation for every target.
    Common,
    /// It was derived.
    Derived,
}

/// The change of a container's own variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is unchanged.
    None,
    /// It has a new value.
    Value,
    /// It has a new name.
    Name,
}

/// A variable that an Instrumentation sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the variable.
    pub name: String,
    /// Its value; empty if `from` is set.
    pub value: String,
    /// Its `valueFrom`.
    pub from: Option<Box<Value>>,
}

held!(Setting: name, value, from;);

impl<'p> Entry<'p> {
    /// A derived variable.
    pub fn new(name: impl Into<Cow<'p, str>>, value: impl Into<Cow<'p, str>>) -> Self {
        let (name, value) = (name.into(), value.into());
        Self { name, value, from: None, origin: None, change: Change::None, set_by: SetBy::Derived }
    }

    /// The size of what is added as JSON, about, in bytes.
    pub(super) fn added(&self) -> usize {
        const EMPTY: usize = r#"{"name":"","value":""},"#.len();
        let value = || match &self.from {
            Some(Source::Json(from)) => json::of(from).len(),
            Some(Source::Field(FieldRef { field })) => {
                r#"{"fieldRef":{"fieldPath":""}}"#.len() + field.path.len()
            }
            None => self.value.len(),
        };
        match (self.origin, self.change) {
            (None, _) => self.name.len() + value() + EMPTY,
            (Some(_), Change::None) => 0,
            (Some(_), Change::Value) => self.value.len(),
            (Some(_), Change::Name) => self.name.len(),
        }
    }

    /// An extended variable, which has several sources.
    pub(super) fn extended(name: &'p str, value: String) -> Self {
        Self { set_by: SetBy::Container, ..Self::new(name, value) }
    }

    /// Whether the variable may be unset because its source is optional.
    pub fn is_optional(&self) -> bool {
        self.from.as_ref().is_some_and(Source::is_optional)
    }

    /// Whether its value comes from the same source as that of a setting.
    pub fn has_source_of(&self, setting: &Setting) -> bool {
        matches!((&self.from, &setting.from), (Some(Source::Json(one)), Some(other)) if **one == **other)
    }

    /// A variable that refers to a field of the pod, such as `metadata.name`.
    pub fn field(name: &'static str, path: &'static str) -> Self {
        Self { from: Some(Source::Field(FieldRef { field: FieldPath { path } })), ..Self::new(name, "") }
    }
}

impl Serialize for Entry<'_> {
    /// As an entry of a container's list.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut variable = serializer.serialize_struct("EnvVar", 2)?;
        variable.serialize_field("name", &self.name)?;
        match &self.from {
            Some(from) => variable.serialize_field("valueFrom", from)?,
            None => variable.serialize_field("value", &self.value)?,
        }
        variable.end()
    }
}

impl<'p> From<&'p Setting> for Entry<'p> {
    fn from(setting: &'p Setting) -> Self {
        Self {
            from: setting.from.as_ref().map(|from| Source::Json(Cow::Borrowed(from))),
            ..Self::new(setting.name.as_str(), setting.value.as_str())
        }
    }
}
