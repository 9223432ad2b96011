//! Resource attributes that an agent does not read as they were meant (D34).
//!
//! Messages show keys, never values: those may be secret.

use std::{collections::BTreeMap, fmt};

use percent_encoding::percent_decode_str;

use super::{
    attribute_value::{is_escape, is_key},
    pod::Pod,
    resource::{POD_NAME, Policy},
};
use otel_webhook_api::{
    RESOURCE_PREFIX,
    defaults::{Decoding, LanguageDefaults, Release},
};

/// The maximum length of a value for an agent that discards all attributes for one error, in UTF-16 code units.
const LONGEST_VALUE: usize = 255;

/// The maximum length of a key in a message, in characters.
const SHOWN: usize = 60;

/// Resource attributes that an agent does not read as they were meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Problem {
    /// Attributes were skipped, since their keys cannot be written.
    Key {
        /// The first key.
        key: String,
        /// The number of further keys.
        more: usize,
    },
    /// The agent discards all attributes because of one.
    Discarded {
        /// The key, or the entry without one.
        key: String,
        /// The error.
        error: Error,
    },
    /// The agent does not decode values.
    NotDecoded {
        /// The first key of an encoded value.
        key: String,
        /// The agent's image.
        image: String,
        /// The first version that decodes.
        since: Release,
    },
    /// The agent does not decode values, and a value has a comma.
    Split {
        /// The key.
        key: String,
    },
}

/// Why an agent discards all attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// An entry has no `=`.
    NoValue,
    /// An entry has several.
    EqualsSign,
    /// An escape cannot be decoded.
    Escape,
    /// A value is too long.
    Length(usize),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { key, more } => {
                write!(f, "the resource attribute {} is skipped", Quoted(key))?;
                if *more > 0 {
                    write!(f, " (and {more} more)")?;
                }
                f.write_str(": its key is empty or has \",\", \"=\" or a control character, so that it cannot be written; rename it")
            }
            Self::Discarded { key, error } => {
                let key = Quoted(key);
                f.write_str(
                    "this agent discards all resource attributes for one error in OTEL_RESOURCE_ATTRIBUTES: ",
                )?;
                match error {
                    Error::NoValue => write!(f, "the entry {key} has no \"=\"; set it to key=value"),
                    Error::EqualsSign => {
                        write!(f, "the value of {key} has a \"=\" that is not encoded; write %3D")
                    }
                    Error::Escape => write!(
                        f,
                        "the value of {key} has an escape that cannot be decoded; write %25 for a %"
                    ),
                    Error::Length(length) => {
                        write!(
                            f,
                            "the value of {key} has {length} characters; valid: at most {LONGEST_VALUE}"
                        )
                    }
                }
            }
            Self::NotDecoded { key, image, since: (major, minor) } => write!(
                f,
                "{image} does not decode resource attributes, so that escapes such as %2C stay in the value of {}; \
                 use version {major}.{minor}.0 or newer",
                Quoted(key)
            ),
            Self::Split { key } => write!(
                f,
                "the value of the resource attribute {} has a comma, which this agent takes for the end of the \
                 value; remove it",
                Quoted(key)
            ),
        }
    }
}

/// The problems of the attributes of an Instrumentation and of the pod's annotations.
pub fn of_sources(policy: &Policy, pod: &Pod<'_>, decoding: Decoding) -> Vec<Problem> {
    let policy = policy.attributes.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let annotated = pod.metadata.annotations.iter();
    let annotated = annotated.filter_map(|(key, value)| Some((key.strip_prefix(RESOURCE_PREFIX)?, value)));
    // That annotation only sets another variable.
    let annotated = annotated.filter(|(key, _)| *key != "service.name");
    // An annotation overrides the Instrumentation.
    let all: BTreeMap<_, _> = policy.chain(annotated).collect();
    let mut problems = Vec::new();
    let mut unwritable = all.keys().filter(|key| !is_key(key));
    if let Some(first) = unwritable.next() {
        problems.push(Problem::Key { key: shortened(first), more: unwritable.count() });
    }
    if decoding == Decoding::Never {
        let split = all.iter().find(|(key, value)| is_key(key) && value.contains(','));
        problems.extend(split.map(|(key, _)| Problem::Split { key: shortened(key) }));
    }
    problems
}

/// The problem of a value of `OTEL_RESOURCE_ATTRIBUTES`, if the agent in an image cannot read all of it.
pub fn of_variable(value: &str, defaults: &LanguageDefaults, image: &str, pod: &Pod<'_>) -> Option<Problem> {
    let mut entries = value.split(',').map(str::trim).filter(|entry| !is_open(entry));
    match defaults.decoding {
        Decoding::AllOrNone => entries.find_map(|entry| {
            let (key, error) = error(entry, pod)?;
            Some(Problem::Discarded { key: shortened(key), error })
        }),
        Decoding::Since(_) => {
            let since = defaults.decodes_since(image)?;
            let (key, _) =
                entries.filter_map(|entry| entry.split_once('=')).find(|(_, value)| has_escape(value))?;
            Some(Problem::NotDecoded { key: shortened(key), image: image.to_owned(), since })
        }
        Decoding::Each | Decoding::Never => None,
    }
}

fn has_escape(value: &str) -> bool {
    value.match_indices('%').any(|(at, _)| is_escape(&value.as_bytes()[at..]))
}

/// Whether an entry is empty, which agents ignore, or a reference with unknown attributes.
fn is_open(entry: &str) -> bool {
    entry.is_empty() || entry.starts_with("$(")
}

/// The key and the error of an entry, if an agent would discard all entries for it.
fn error<'e>(entry: &'e str, pod: &Pod<'_>) -> Option<(&'e str, Error)> {
    let Some((key, value)) = entry.split_once('=') else { return Some((entry, Error::NoValue)) };
    let error = if value.contains('=') {
        Error::EqualsSign
    } else {
        match length(value.trim(), pod) {
            None => Error::Escape,
            Some(length) if length > LONGEST_VALUE => Error::Length(length),
            Some(_) => return None,
        }
    };
    Some((key.trim_end(), error))
}

/// The length of a value after decoding, with the pod's name; that of other references is unknown. `None` if it
/// cannot be decoded.
fn length(value: &str, pod: &Pod<'_>) -> Option<usize> {
    if value.match_indices('%').any(|(at, _)| !is_escape(&value.as_bytes()[at..])) {
        return None;
    }
    let decoded = percent_decode_str(value).decode_utf8().ok()?;
    let mut parts = decoded.split("$(");
    let mut length = parts.next().map_or(0, units);
    for part in parts {
        length += match part.split_once(')') {
            Some((name, rest)) if name == POD_NAME => name_length(pod) + units(rest),
            Some((_, rest)) => units(rest),
            None => units(part),
        };
    }
    Some(length)
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// The length of the pod's name. The API server appends five characters to the prefix of a generated name,
/// which it cuts to 58.
fn name_length(pod: &Pod<'_>) -> usize {
    let (name, prefix) = (&pod.metadata.name, &pod.metadata.generate_name);
    if name.is_empty() { prefix.len().min(58) + 5 } else { name.len() }
}

/// The beginning of a key.
fn shortened(key: &str) -> String {
    let end = key.char_indices().nth(SHOWN).map(|(end, _)| end);
    end.map_or_else(|| key.to_owned(), |end| [&key[..end], "\u{2026}"].concat())
}

/// A key in quotes, with escapes.
struct Quoted<'k>(&'k str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0, f)
    }
}
