//! The result of validation.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde_json::Value;

use super::{judge::judge, reach::Reach};
use crate::version::Version;

/// The errors, warnings and notes of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why the object is rejected; without errors it is allowed.
    pub errors: Vec<Problem>,
    /// What is allowed, but probably a mistake.
    pub warnings: Vec<Warning>,
    /// What is correct, but good to know.
    pub notes: Vec<Warning>,
}

/// An error, for which an object is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field, such as `spec.sampler.type`.
    pub field: String,
    /// What is wrong with the value, and what is valid.
    pub message: String,
    /// The kind of the error.
    pub cause: Cause,
    /// The pods that it would break.
    pub reach: Reach,
}

/// Kinds of errors, with the names of the API server's validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The value cannot be used.
    Invalid,
    /// The value is missing or empty.
    Required,
    /// The value is not one of a closed list.
    NotSupported,
    /// The value has the wrong type.
    TypeInvalid,
    /// The string has too many characters.
    TooLong,
    /// The list or map has too many entries.
    TooMany,
}

/// A warning, or a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its stable code.
    pub kind: Cow<'static, str>,
    /// Path of the field.
    pub field: String,
    /// What it means.
    pub message: String,
}

impl Verdict {
    /// Whether the object may be stored.
    pub fn is_allowed(&self) -> bool {
        self.errors.is_empty()
    }

    /// Adds an error.
    pub fn reject(&mut self, cause: Cause, field: impl Into<String>, message: impl Into<String>) {
        let field = field.into();
        self.errors.push(Problem { reach: Reach::of(&field), field, message: message.into(), cause });
    }

    /// Adds an error for two fields that contradict each other; injection uses one of them by a rule.
    pub fn reject_settled(&mut self, field: impl Into<String>, message: impl Into<String>) {
        let (field, message) = (field.into(), message.into());
        self.errors.push(Problem { field, message, cause: Cause::Invalid, reach: Reach::NoPod });
    }

    /// Adds a warning.
    pub fn warn(
        &mut self,
        kind: impl Into<Cow<'static, str>>,
        field: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.warnings.push(Warning { kind: kind.into(), field: field.into(), message: message.into() });
    }

    /// Adds a note.
    pub fn note(
        &mut self,
        kind: impl Into<Cow<'static, str>>,
        field: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.notes.push(Warning { kind: kind.into(), field: field.into(), message: message.into() });
    }

    /// Returns the same with the fields of v1alpha1 under their paths in a version.
    #[must_use]
    pub fn in_version(mut self, version: Version) -> Self {
        let errors = self.errors.iter_mut().map(|error| (&mut error.field, &mut error.message));
        let warnings = self.warnings.iter_mut().chain(&mut self.notes);
        for (field, message) in errors.chain(warnings.map(|one| (&mut one.field, &mut one.message))) {
            *field = version.field(field);
            *message = version.message(message);
        }
        self
    }

    /// Turns errors that the old object had into warnings.
    pub fn forgive(&mut self, mut known: Vec<Problem>) {
        for error in std::mem::take(&mut self.errors) {
            let same = |old: &Problem| old.message == error.message && same_place(&old.field, &error.field);
            if let Some(at) = known.iter().position(same) {
                // Each old error matches one new error: a second of its kind is new.
                known.swap_remove(at);
                self.warn("was-there-before", error.field, error.message);
            } else {
                self.errors.push(error);
            }
        }
    }
}

/// Whether paths are equal except for positions in lists, which shift when an entry is added.
fn same_place(one: &str, other: &str) -> bool {
    fn names(path: &str) -> impl Iterator<Item = &str> {
        path.split('[').map(|part| part.trim_start_matches(|letter: char| letter.is_ascii_digit()))
    }
    names(one).eq(names(other))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl Cause {
    /// The reason in the causes of a status of the API server.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }
}

/// What an object cannot be used for, each with the first error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unusable {
    /// Why it cannot be used at all.
    pub at_all: Option<String>,
    /// Why it cannot be used for a language, by the language's field in the specification.
    pub for_languages: BTreeMap<&'static str, String>,
}

/// Returns what an Instrumentation that was not validated cannot be used for.
pub fn unusable(object: &Value) -> Unusable {
    let mut unusable = Unusable::default();
    for error in judge(object).errors {
        match error.reach {
            Reach::NoPod => {}
            Reach::Language(field) => {
                unusable.for_languages.entry(field).or_insert_with(|| error.to_string());
            }
            Reach::EveryPod => {
                unusable.at_all.get_or_insert_with(|| error.to_string());
            }
        }
    }
    unusable
}
