//! What an object is, and the objects that a list holds.

use std::borrow::Cow;

use serde_json::Value;

use super::error::Problem;

/// What an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMeta {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
}

impl TypeMeta {
    /// What an object says that it is.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |field: &str| object[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Some(Self { api_version: text("apiVersion")?, kind: text("kind")? })
    }

    /// The API group; empty for the core's.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// The type of the items of a list which do not say it themselves: a
/// `PodList` holds Pods. None for an object that is no list.
pub fn item_type(list: &Value) -> Option<TypeMeta> {
    let TypeMeta { api_version, kind } = TypeMeta::of(list)?;
    let kind = kind.strip_suffix("List").filter(|_| list["items"].is_array())?;
    Some(TypeMeta { api_version, kind: kind.to_owned() })
}

/// The items of a list, each with its type; none for an object that is no list.
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

/// Checks that a document is an object that says what it is, and the items of a `List`, too.
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
            let found = if said.is_null() { String::new() } else { format!(" that is text (found {said})") };
            return Err(Problem::Untyped { object: name(), field, found });
        }
    }
    // The items of a typed list need not say what they are; those of a `List` can be anything.
    if object["kind"] != "List" {
        return Ok(());
    }
    let items = object["items"].as_array().into_iter().flatten().enumerate();
    items
        .into_iter()
        .try_for_each(|(index, item)| check_object(item, &|| format!("{}: items[{index}]", name())))
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "plain text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
