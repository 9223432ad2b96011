//! Whether an Instrumentation can be taken, and what is worth a warning.
//!
//! ```text
//! object ─ schema ──> types, values and patterns, as the CRD has them
//!        └ rules ───> what fields mean to each other and to a pod
//! ```
//!
//! All errors are found, not only the first. A message names the value and
//! what is valid; the path of the field stands beside it. Values of variables
//! are never repeated: they may be secrets.

mod claim;
mod exporter;
mod image;
mod language;
mod path;
mod reach;
mod resources;
mod sampler;
mod schema;
mod secret;
mod security;
mod selector;
mod source;
mod text;
mod variables;

use std::{borrow::Cow, fmt};

use serde_json::Value;

use super::{ALLOWED_NAMESPACES, allowed, crd, defaults::DefaultImages};
pub use language::warn_of_sizes;
use path::Path;
pub use reach::{Reach, Unusable, unusable};
pub use text::suggestion;

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

/// Judges an object, which has been defaulted or will be: what defaulting
/// would fill in counts as if it were there. `old` is the object before an
/// update; an update is refused only for errors that it did not have.
pub fn validate(new: &Value, old: Option<&Value>) -> Verdict {
    if !new["metadata"]["deletionTimestamp"].is_null() {
        // Whatever is wrong with it, it is on its way out; finalizers have to come off.
        return Verdict::default();
    }
    let mut verdict = judge(new);
    if let Some(old) = old {
        verdict.forgive(judge(old).errors);
    }
    verdict
}

fn judge(object: &Value) -> Verdict {
    let mut verdict = Verdict::default();
    check_name(&mut verdict, &object["metadata"]);
    check_allowed(&mut verdict, &object["metadata"]["annotations"][ALLOWED_NAMESPACES]);
    let (path, spec) = (Path::Root("spec"), &object["spec"]);
    if !spec.is_null() {
        schema::check(&mut verdict, path, crd::schema::spec(), spec);
    }
    let context = "initContainerSecurityContext";
    security::check(&mut verdict, path.member(context), &spec[context]);
    sampler::check(&mut verdict, &spec["sampler"]);
    selector::check(&mut verdict, path.member("selector"), &spec["selector"]);
    exporter::check(&mut verdict, object);
    variables::check(&mut verdict, path.member("env"), &spec["env"]);
    language::check(&mut verdict, path, spec);
    verdict
}

/// The API server checks names before any webhook; files come without an API server.
fn check_name(verdict: &mut Verdict, metadata: &Value) {
    let is_given = |field: &str| metadata[field].as_str().is_some_and(|name| !name.is_empty());
    if !is_given("name") && !is_given("generateName") {
        verdict.refuse(Cause::Required, "metadata.name", "is missing; every object needs a name");
    } else if let Some(name) = metadata["name"].as_str()
        && !text::is_dns_name(name)
        && !name.is_empty()
    {
        let shown = text::quoted(name);
        let message = format!("{shown} is not a name; valid: lower-case letters, digits, - and .");
        verdict.refuse(Cause::Invalid, "metadata.name", message);
    }
}

/// An entry that is not the name of a namespace allows nobody, which is safe and hardly meant.
fn check_allowed(verdict: &mut Verdict, annotation: &Value) {
    for entry in allowed::malformed(annotation.as_str().unwrap_or_default()) {
        let message = format!(
            "{} is not the name of a namespace, so it allows none; valid: a comma-separated list of namespaces \
             (lower-case letters, digits and -, at most 63 characters each), or \"*\" for all",
            text::quoted(entry)
        );
        let field = format!("metadata.annotations[{ALLOWED_NAMESPACES}]");
        verdict.warn("allowed-namespaces", field, message);
    }
}

impl Verdict {
    /// Whether the object may be stored.
    pub fn is_allowed(&self) -> bool {
        self.errors.is_empty()
    }

    fn refuse(&mut self, cause: Cause, field: impl Into<String>, message: impl Into<String>) {
        let field = field.into();
        self.errors.push(Problem { reach: Reach::of(&field), field, message: message.into(), cause });
    }

    /// Refuses two fields that contradict each other, of which injection takes one by rule.
    fn refuse_settled(&mut self, field: impl Into<String>, message: impl Into<String>) {
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
    fn note(
        &mut self,
        kind: impl Into<Cow<'static, str>>,
        field: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.notes.push(Warning { kind: kind.into(), field: field.into(), message: message.into() });
    }

    /// Adds what becomes of the images of an Instrumentation, beside these defaults.
    pub fn look_at_images(&mut self, object: &Value, images: &DefaultImages) {
        image::check(self, object, images);
    }

    /// Makes warnings of errors that were there before.
    fn forgive(&mut self, mut known: Vec<Problem>) {
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

#[cfg(test)]
mod tests;
