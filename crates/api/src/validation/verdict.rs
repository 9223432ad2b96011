//! The result of validation.

use std::{borrow::Cow, fmt};

use super::reach::Reach;

/// What validation found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why the object is refused; it is allowed where there is none.
    pub errors: Vec<Problem>,
    /// What is allowed, but probably not meant.
    pub warnings: Vec<Warning>,
    /// What is as it should be, and good to know.
    pub notes: Vec<Warning>,
}

/// Something for which an object is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field, such as `spec.sampler.type`.
    pub field: String,
    /// What is wrong with the value, and what is valid.
    pub message: String,
    /// What kind of mistake it is.
    pub cause: Cause,
    /// Which pods it would break.
    pub reach: Reach,
}

/// Kinds of mistakes, as the API server's own validation names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The value cannot be used.
    Invalid,
    /// The value is missing or empty.
    Required,
    /// The value is none of a closed list.
    NotSupported,
    /// The value has the wrong type.
    TypeInvalid,
    /// The text has too many characters.
    TooLong,
    /// The list or map has too many entries.
    TooMany,
}

/// Something that is allowed, and probably not meant, or good to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// A stable name of it.
    pub kind: Cow<'static, str>,
    /// Path of the field.
    pub field: String,
    /// What will come of it.
    pub message: String,
}

impl Verdict {
    /// Whether the object may be stored.
    pub fn is_allowed(&self) -> bool {
        self.errors.is_empty()
    }

    /// Adds an error.
    pub fn refuse(&mut self, cause: Cause, field: impl Into<String>, message: impl Into<String>) {
        let field = field.into();
        self.errors.push(Problem { reach: Reach::of(&field), field, message: message.into(), cause });
    }

    /// Refuses two fields that contradict each other, of which injection takes one by rule.
    pub fn refuse_settled(&mut self, field: impl Into<String>, message: impl Into<String>) {
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

    /// Adds what is good to know.
    pub fn note(
        &mut self,
        kind: impl Into<Cow<'static, str>>,
        field: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.notes.push(Warning { kind: kind.into(), field: field.into(), message: message.into() });
    }

    /// Makes warnings of errors that were there before.
    pub fn forgive(&mut self, mut known: Vec<Problem>) {
        for error in std::mem::take(&mut self.errors) {
            let same = |old: &Problem| old.message == error.message && same_place(&old.field, &error.field);
            if let Some(at) = known.iter().position(same) {
                // Each old error forgives one: a second of its kind is new.
                known.swap_remove(at);
                self.warn("was-there-before", error.field, error.message);
            } else {
                self.errors.push(error);
            }
        }
    }
}

/// Whether paths are the same but for positions in lists, which shift when an entry is added.
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
    /// The reason as the API server writes it into the causes of a refusal.
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
