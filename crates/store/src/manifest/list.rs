//! The types of objects, and the items of lists.

use std::borrow::Cow;

use serde_json::Value;

use super::error::Problem;
use otel_webhook_api::{API_VERSION, Version};

/// The type of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMeta {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
}

impl TypeMeta {
    /// Returns the type of an object.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |field: &str| object[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Some(Self { api_version: text("apiVersion")?, kind: text("kind")? })
    }

    /// Returns the API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// Returns the type of the items of a typed list: a `PodList` contains Pods. None for an object that is not a list.
pub fn item_type(list: &Value) -> Option<TypeMeta> {
    let TypeMeta { api_version, kind } = TypeMeta::of(list)?;
    let kind = kind.strip_suffix("List").filter(|_| list["items"].is_array())?;
    Some(TypeMeta { api_version, kind: kind.to_owned() })
}

/// Returns the items of a list, each with its type; none for an object that is not a list.
pub fn items(list: &Value) -> Option<impl Iterator<Item = Cow<'_, Value>>> {
    let item_type = item_type(list)?;
    let items = list["items"].as_array()?.iter();
    Some(items.map(move |item| match (TypeMeta::of(item), item) {
        (None, Value::Object(members)) => {
            let mut members = members.clone();
            members.insert("apiVersion".to_owned(), item_type.api_version.clone().into());
            members.insert("kind".to_owned(), item_type.kind.clone().into());
            Cow::Owned(Value::Object(members))
        }
        _ => Cow::Borrowed(item),
    }))
}

/// Checks that a document is an object with a type, and so are the items of a `List`.
pub fn check(document: &Value) -> Result<(), Problem> {
    check_object(document, &|| "the document".to_owned())
}

fn check_object(object: &Value, name: &dyn Fn() -> String) -> Result<(), Problem> {
    if !object.is_object() {
        return Err(Problem::NotAnObject { found: found(object) });
    }
    for field in ["apiVersion", "kind"] {
        let said = &object[field];
        if said.as_str().is_none_or(str::is_empty) {
            let found =
                if said.is_null() { String::new() } else { format!(" of type string (found {said})") };
            return Err(Problem::Untyped { object: name(), field, found });
        }
    }
    check_version(object, name)?;
    // Items of a typed list need no type; those of a `List` do.
    if object["kind"] != "List" {
        return Ok(());
    }
    let items = object["items"].as_array().into_iter().flatten().enumerate();
    items
        .into_iter()
        .try_for_each(|(index, item)| check_object(item, &|| format!("{}: items[{index}]", name())))
}

/// Checks that an Instrumentation has the version that is read: of another one, nothing would be said.
fn check_version(object: &Value, name: &dyn Fn() -> String) -> Result<(), Problem> {
    let Some(TypeMeta { api_version, kind }) = TypeMeta::of(object) else { return Ok(()) };
    let (group, _) = API_VERSION.split_once('/').expect("a group and a version");
    let is_ours = api_version.split('/').next() == Some(group)
        && ["Instrumentation", "InstrumentationList"].contains(&&*kind);
    if is_ours && Version::of(&api_version).is_none() {
        return Err(Problem::UnknownVersion { object: name(), found: api_version });
    }
    Ok(())
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
