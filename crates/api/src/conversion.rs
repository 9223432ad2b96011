//! Conversion of Instrumentations between versions, without loss.
//!
//! ```text
//! object ─ plain ──> the fields that both versions have, under their paths in the other version
//!        ─ apply ──> what only the other version has, kept by an earlier conversion
//!        ─ keep  ──> what only this version has, for the way back
//! ```
//!
//! What is kept is the difference between the object and what [`plain`] would make of the converted one. So
//! nothing depends on a list of fields that would have to be complete: unknown fields come back as well.
//! Each difference also says what the field was without it, and applies only while it still is that: an edit of
//! the field in the other version overrides it.

use std::{borrow::Cow, fmt};

use serde_json::{Map, Value, json};

use crate::version::{ALPHA_FIELDS, Version, kept_by_the_operator, moved, only_in};

/// The annotation in which a conversion keeps what a version has no field for.
pub const CONVERSION_ANNOTATION: &str = "otel-webhook/conversion";

/// The member of the annotation with a value of it that is none of a conversion.
const REPLACED: &str = "replaced";

/// Why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversionError {
    /// The kind is not Instrumentation.
    Kind(String),
    /// The version is not known.
    Version(String),
    /// A part of the metadata has the wrong type; the field, and what is valid.
    Malformed(&'static str, &'static str),
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => write!(f, "kind: {kind:?} cannot be converted; valid: Instrumentation"),
            Self::Version(version) => {
                let known = Version::ALL.map(Version::api_version).join(", ");
                write!(f, "apiVersion: {version:?} is not known; valid: {known}")
            }
            Self::Malformed(field, valid) => write!(f, "{field} has the wrong type; valid: {valid}"),
        }
    }
}

impl std::error::Error for ConversionError {}

/// Returns an Instrumentation in another version. Of its metadata only annotations change: those that keep what a
/// version has no field for. An empty map of annotations is removed.
///
/// # Errors
/// If it is not an Instrumentation of a known version with metadata.
pub fn convert(object: &Value, to: Version) -> Result<Value, ConversionError> {
    let from = version_of(object)?;
    if from == to {
        return Ok(object.clone());
    }
    if !object["metadata"].is_object() {
        return Err(ConversionError::Malformed("metadata", "an object"));
    }
    let is_text = |annotations: &Map<_, Value>| annotations.values().all(Value::is_string);
    let annotations = &object["metadata"]["annotations"];
    if !annotations.is_null() && !annotations.as_object().is_some_and(is_text) {
        return Err(ConversionError::Malformed("metadata.annotations", "a map of text"));
    }
    let mut source = object.clone();
    let Note { entries, replaced, is_back } = take_note(&mut source, to);
    if source["metadata"]["annotations"].as_object().is_none_or(Map::is_empty) {
        remove(&mut source, &["metadata", "annotations"]);
    }
    let mut converted = plain(&source, to);
    for entry in &entries {
        entry.apply(&mut converted);
    }
    let kept = differences(&plain(&converted, from), &source);
    let note = match replaced {
        None if kept.is_empty() => return Ok(converted),
        Some(replaced) if is_back && kept.is_empty() => replaced,
        replaced => {
            let kept = kept.iter().map(Entry::written).collect::<Value>();
            let replaced = replaced.map(|replaced| (REPLACED.to_owned(), replaced));
            let note: Map<_, _> = [(from.name().to_owned(), kept)].into_iter().chain(replaced).collect();
            Value::Object(note).to_string().into()
        }
    };
    insert(&mut converted, &["metadata", "annotations", CONVERSION_ANNOTATION], note);
    Ok(converted)
}

/// The version of an Instrumentation.
///
/// # Errors
/// If it is not an Instrumentation of a known version.
pub fn version_of(object: &Value) -> Result<Version, ConversionError> {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    if object["kind"] != "Instrumentation" {
        return Err(ConversionError::Kind(text("kind")));
    }
    Version::of(&text("apiVersion")).ok_or_else(|| ConversionError::Version(text("apiVersion")))
}

/// Returns an object in a version, or the object itself if it cannot be converted.
pub fn in_version(object: &Value, to: Version) -> Cow<'_, Value> {
    match version_of(object) {
        Ok(version) if version != to => convert(object, to).map_or(Cow::Borrowed(object), Cow::Owned),
        _ => Cow::Borrowed(object),
    }
}

/// Whether an object has an annotation of conversions that is not used, since it is none that a conversion wrote.
pub fn has_foreign_note(object: &Value) -> bool {
    let Ok(version) = version_of(object) else { return false };
    let note = &object["metadata"]["annotations"][CONVERSION_ANNOTATION];
    !note.is_null() && note.as_str().and_then(|text| Note::read(text, version.other())).is_none()
}

/// The fields that both versions have, and those that the operator keeps in an annotation, in another version.
fn plain(object: &Value, to: Version) -> Value {
    let from = to.other();
    let mut object = object.clone();
    object["apiVersion"] = to.api_version().into();
    let mut taken = Vec::new();
    // What only v1alpha1 has is in the annotation of the operator, in v1beta1.
    match to {
        Version::V1alpha1 => taken.extend(take_fields(&mut object)),
        Version::V1beta1 => keep_fields(&mut object),
    }
    let spec = &mut object["spec"];
    if spec.is_object() {
        // Only v1beta1 has it, and it is not moved with what it is in.
        remove(spec, &[moved()[0].at(from).as_slice(), &["protocol"]].concat());
        for field in moved() {
            taken.extend(remove(spec, field.at(from)).map(|value| (field.at(to).clone(), value)));
        }
        for version in Version::ALL {
            for field in moved() {
                remove(spec, field.at(version));
            }
            for field in only_in(version) {
                remove(spec, &field);
            }
        }
    } else if spec.is_null() && object.get("spec").is_some() {
        // Indexing has added it, if it was not there.
        remove(&mut object, &["spec"]);
    }
    for (field, value) in taken {
        insert(&mut object, &[&["spec"], field.as_slice()].concat(), value);
    }
    object
}

/// Puts fields of v1alpha1 into the annotation of the operator.
fn keep_fields(object: &mut Value) {
    let fields = kept_by_the_operator().iter().filter_map(|(field, name)| {
        let value = at(&object["spec"], field)?.clone();
        Some((name.clone(), value))
    });
    let fields: Map<_, _> = fields.collect();
    if !fields.is_empty() {
        let text = Value::Object(fields).to_string().into();
        insert(object, &["metadata", "annotations", ALPHA_FIELDS], text);
    }
}

/// Takes fields of v1alpha1 out of the annotation of the operator. One that cannot be read stays.
fn take_fields(object: &mut Value) -> Vec<(Vec<&'static str>, Value)> {
    let annotation = object["metadata"]["annotations"][ALPHA_FIELDS].as_str();
    let Some(Value::Object(mut fields)) = annotation.and_then(|text| serde_json::from_str(text).ok()) else {
        return Vec::new();
    };
    let mut taken = Vec::new();
    for (field, name) in kept_by_the_operator() {
        taken.extend(fields.shift_remove(name).map(|value| (field.clone(), value)));
    }
    if taken.is_empty() {
        return taken;
    }
    if fields.is_empty() {
        remove(object, &["metadata", "annotations", ALPHA_FIELDS]);
        if object["metadata"]["annotations"].as_object().is_some_and(Map::is_empty) {
            remove(object, &["metadata", "annotations"]);
        }
    } else {
        object["metadata"]["annotations"][ALPHA_FIELDS] = Value::Object(fields).to_string().into();
    }
    taken
}

/// What the annotation of conversions keeps.
#[derive(Debug, Default)]
struct Note {
    /// The differences of the other version.
    entries: Vec<Entry>,
    /// A value of the annotation that no conversion wrote.
    replaced: Option<Value>,
    /// Whether that was the value in the other version.
    is_back: bool,
}

impl Note {
    /// Reads what a conversion to the other version wrote; `None` if none wrote it.
    fn read(text: &str, to: Version) -> Option<Self> {
        let mut note: Map<String, Value> = serde_json::from_str(text).ok()?;
        let entries = note.shift_remove(to.name())?;
        let entries: Vec<_> = entries.as_array()?.iter().map(Entry::read).collect::<Option<_>>()?;
        let replaced = note.shift_remove(REPLACED);
        let is_foreign =
            |replaced: &Value| replaced.as_str().is_some_and(|text| Self::read(text, to.other()).is_none());
        let is_valid = note.is_empty() && replaced.as_ref().map_or(!entries.is_empty(), is_foreign);
        is_valid.then_some(Self { entries, replaced, is_back: true })
    }
}

/// Takes the annotation out of an object.
fn take_note(object: &mut Value, to: Version) -> Note {
    let annotations = object["metadata"]["annotations"].as_object_mut();
    let Some(value) = annotations.and_then(|all| all.shift_remove(CONVERSION_ANNOTATION)) else {
        return Note::default();
    };
    let read = value.as_str().and_then(|text| Note::read(text, to));
    read.unwrap_or_else(|| Note { replaced: Some(value), ..Note::default() })
}

/// A difference at one place of an object.
#[derive(Debug, PartialEq)]
struct Entry {
    /// The names of members, from the root.
    path: Vec<String>,
    /// The value, if there is one.
    value: Option<Value>,
    /// The value without the difference.
    was: Option<Value>,
}

impl Entry {
    /// Reads an entry. It may change the specification and annotations only: the API server rejects a conversion
    /// that changes other metadata.
    fn read(entry: &Value) -> Option<Self> {
        let path = entry["path"].as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
        let path: Vec<_> = path.collect::<Option<_>>()?;
        let (value, was) = (entry.get("value").cloned(), entry.get("was").cloned());
        let is_text = value.as_ref().is_none_or(Value::is_string);
        // Deeper ones come from no object that could be read.
        if path.len() + value.as_ref().map_or(0, depth) > DEEPEST {
            return None;
        }
        let names: Vec<_> = path.iter().map(String::as_str).collect();
        let is_valid = match names.as_slice() {
            ["spec", ..] => true,
            ["metadata", "annotations", name] => is_text && *name != CONVERSION_ANNOTATION,
            _ => false,
        };
        is_valid.then_some(Self { path, value, was })
    }

    fn written(&self) -> Value {
        let mut entry = Map::new();
        entry.insert("path".to_owned(), self.path.clone().into());
        entry.extend(self.value.clone().map(|value| ("value".to_owned(), value)));
        entry.extend(self.was.clone().map(|was| ("was".to_owned(), was)));
        Value::Object(entry)
    }

    fn apply(&self, object: &mut Value) {
        let path: Vec<_> = self.path.iter().map(String::as_str).collect();
        if at(object, &path) != self.was.as_ref() {
            return;
        }
        match &self.value {
            Some(value) => insert(object, &path, value.clone()),
            None => drop(remove(object, &path)),
        }
    }
}

/// What has to change in one object for it to equal another.
fn differences(base: &Value, wanted: &Value) -> Vec<Entry> {
    fn compare(path: &mut Vec<String>, base: Option<&Value>, wanted: Option<&Value>, found: &mut Vec<Entry>) {
        match (base, wanted) {
            _ if base == wanted => {}
            (Some(Value::Object(_)) | None, Some(Value::Object(members)))
                if base.is_some() || !members.is_empty() =>
            {
                let others = base.and_then(Value::as_object);
                let gone = others.into_iter().flatten().filter(|(name, _)| !members.contains_key(*name));
                for name in gone.map(|(name, _)| name).chain(members.keys()) {
                    path.push(name.clone());
                    compare(path, others.and_then(|others| others.get(name)), members.get(name), found);
                    path.pop();
                }
            }
            _ => found.push(Entry { path: path.clone(), value: wanted.cloned(), was: base.cloned() }),
        }
    }
    let mut found = Vec::new();
    for root in ["metadata", "spec"] {
        compare(&mut vec![root.to_owned()], base.get(root), wanted.get(root), &mut found);
    }
    // The order of members means nothing, so it does not change the annotation.
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// The levels of objects and lists that `serde_json` reads.
const DEEPEST: usize = 128;

fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Object(members) => members.values().map(depth).max(),
        Value::Array(items) => items.iter().map(depth).max(),
        _ => return 0,
    };
    1 + below.unwrap_or_default()
}

fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.as_object()?.get(*name))
}

fn remove(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, above) = path.split_last()?;
    let parent = above.iter().try_fold(value, |value, name| value.as_object_mut()?.get_mut(*name))?;
    parent.as_object_mut()?.shift_remove(*last)
}

/// Sets a member, in objects that are created where there are none. What is below something else is not set.
fn insert(value: &mut Value, path: &[&str], new: Value) {
    let Some((first, rest)) = path.split_first() else {
        *value = new;
        return;
    };
    if value.is_null() {
        *value = json!({});
    }
    if let Some(members) = value.as_object_mut() {
        insert(members.entry(*first).or_insert(Value::Null), rest, new);
    }
}

#[cfg(test)]
mod tests;
