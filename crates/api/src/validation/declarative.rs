//! `spec.declarativeConfig`: the document, checked by the schema of the format that it names.

use std::sync::LazyLock;

use jsonschema::{Validator, error::ValidationErrorKind as Kind};
use serde_json::Value;

use super::{
    secret,
    text::{self, Path},
    verdict::{Cause, Verdict},
};
use crate::{
    declarative::{self, Node, Part},
    values::is_hollow,
};

/// Fields that set what the file sets; the SDK ignores their variables.
const EXCLUSIVE: [&str; 3] = ["exporter", "propagators", "sampler"];

/// The end of the names of members that are not stable.
const DEVELOPMENT: &str = "/development";

/// One for each format.
static VALIDATORS: LazyLock<Vec<Validator>> = LazyLock::new(|| {
    let compile = |format| jsonschema::validator_for(declarative::schema(format).value());
    (0..declarative::formats().count()).map(|format| compile(format).expect("a test compiles it")).collect()
});

/// Checks the field, and those that cannot be set together with it.
pub fn check(verdict: &mut Verdict, path: Path<'_>, spec: &Value) {
    let field = &spec[declarative::FIELD];
    if !field.is_object() {
        return;
    }
    for other in EXCLUSIVE.into_iter().filter(|other| !is_hollow(&spec[*other])) {
        let message = "cannot be set together with spec.declarativeConfig, which has it in the file; set OTEL_ variables that \
                       the file refers to by spec.env";
        verdict.reject_settled(path.member(other), message);
    }
    let text = field.to_string();
    for (index, variable) in spec["env"].as_array().into_iter().flatten().enumerate() {
        let name = variable["name"].as_str().unwrap_or_default();
        let is_referred = text.contains(&["${", name].concat());
        if name.starts_with("OTEL_") && !is_referred && !declarative::is_read_with_file(name) {
            let message = format!("sets {name}, which the SDK ignores: the file does not refer to it");
            verdict.warn("declarative-variable-ignored", path.member("env").item(index), message);
        }
    }
    let path = path.member(declarative::FIELD);
    let document = declarative::document(field);
    let Some(format) = declarative::format_of(&document) else {
        let valid = text::list(declarative::formats());
        let (cause, message) = match &document["file_format"] {
            Value::Null => (Cause::Required, format!("is missing; valid: {valid}")),
            Value::String(name) => {
                (Cause::NotSupported, format!("{} is not a known format; valid: {valid}", text::quoted(name)))
            }
            other => {
                (Cause::TypeInvalid, format!("{} is not text; valid: {valid}, in quotes", text::shown(other)))
            }
        };
        return verdict.reject(cause, path.member("file_format"), message);
    };
    let schema = declarative::schema(format);
    walk(verdict, path, Some(schema), &document);
    for error in VALIDATORS[format].iter_errors(&document) {
        let place = error.instance_path().to_string();
        // The JSON pointer of the value, with the escapes of RFC 6901.
        let mut names: Vec<_> =
            place.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
        let node = schema.below(names.iter().map(String::as_str));
        let said = match error.kind() {
            Kind::Required { property } => {
                names.extend(property.as_str().map(str::to_owned));
                Some((Cause::Required, "is missing".to_owned()))
            }
            // It may be a credential.
            kind if names.last().is_some_and(|name| name == "value") => {
                sentence(kind, error.instance(), "the value", node)
            }
            kind => sentence(kind, error.instance(), &text::shown(error.instance()), node),
        };
        if let Some((cause, message)) = said {
            with_path(path, &document, &names, &mut |path| verdict.reject(cause, path, &*message));
        }
    }
}

/// Calls `then` with the path of a value in the document.
fn with_path(path: Path<'_>, value: &Value, names: &[String], then: &mut dyn FnMut(Path<'_>)) {
    match (names, value) {
        ([], _) => then(path),
        ([index, rest @ ..], Value::Array(items)) => {
            let index = index.parse().unwrap_or_default();
            with_path(path.item(index), items.get(index).unwrap_or(&Value::Null), rest, then);
        }
        ([name, rest @ ..], value) => with_path(path.member(name), &value[name], rest, then),
    }
}

/// What an error of the schema says; `None` if it is said elsewhere, or not one.
fn sentence(kind: &Kind, found: &Value, shown: &str, node: Option<Node<'_>>) -> Option<(Cause, String)> {
    let is_scalar = node
        .is_none_or(|node| ["string", "number", "integer", "boolean"].iter().any(|kind| node.allows(kind)));
    if is_scalar && found.as_str().is_some_and(declarative::has_reference) {
        return None;
    }
    let members = || node.into_iter().flat_map(Node::members);
    let names = |value: &Value| {
        let mut names: Vec<_> =
            value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        // The API server sorts them, too.
        names.sort_unstable();
        text::list(names)
    };
    let said = match kind {
        // See `walk`.
        Kind::AdditionalProperties { .. } => return None,
        Kind::Type { .. } | Kind::OneOfNotValid { .. } => {
            let valid = node.map(|node| kinds(node.value())).unwrap_or_default();
            let subject =
                if found.is_null() { "is null".to_owned() } else { format!("{shown} has the wrong type") };
            (Cause::TypeInvalid, format!("{subject}; valid: {valid}"))
        }
        Kind::Enum { options } => {
            let options: Vec<_> =
                options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let suggestion = text::suggestion(found.as_str().unwrap_or_default(), options.iter().copied());
            (Cause::NotSupported, format!("{shown} is not valid{suggestion}; valid: {}", text::list(options)))
        }
        Kind::Minimum { limit } => (Cause::Invalid, format!("{shown} is too small; valid: {limit} or more")),
        Kind::ExclusiveMinimum { limit } => {
            (Cause::Invalid, format!("{shown} is too small; valid: more than {limit}"))
        }
        Kind::Maximum { limit } => (Cause::Invalid, format!("{shown} is too large; valid: at most {limit}")),
        Kind::MinItems { .. } => (Cause::Required, "is an empty list; remove it, or add an item".to_owned()),
        Kind::MinProperties { .. } => {
            (Cause::Required, format!("is empty; valid: one of {}", text::list(members())))
        }
        Kind::MaxProperties { limit } => (
            Cause::TooMany,
            format!("has several members ({}); valid: {limit} of {}", names(found), text::list(members())),
        ),
        other => (Cause::Invalid, format!("{shown} does not fit the schema ({})", other.keyword())),
    };
    Some(said)
}

/// The types that a part of the schema allows, in words.
fn kinds(schema: &Value) -> String {
    let of = |kind: &Value| match kind.as_str() {
        Some("object") => "an object",
        Some("array") => "a list",
        Some("string") => "text",
        Some("integer") => "a whole number",
        Some("number") => "a number",
        Some("boolean") => "true or false",
        _ => "",
    };
    match (&schema["type"], &schema["oneOf"]) {
        (Value::Array(kinds), _) => text::list(kinds.iter().map(of)),
        (Value::Null, Value::Array(_)) => {
            "text, a number, true or false, or a list of one of these".to_owned()
        }
        (kind, _) => of(kind).to_owned(),
    }
}

/// Checks what the schema cannot express: unknown members, references, and credentials.
fn walk(verdict: &mut Verdict, path: Path<'_>, node: Option<Node<'_>>, value: &Value) {
    match value {
        Value::Object(members) => {
            check_header(verdict, path, members.get("name"), members.get("value"));
            for (name, value) in members {
                let known = node.and_then(|node| node.member(name));
                if let (None, Some(node)) = (known, node) {
                    unknown(verdict, path.member(name), node, name);
                }
                walk(verdict, path.member(name), known, value);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(verdict, path.item(index), node.and_then(Node::item), item);
            }
        }
        Value::String(written) => check_text(verdict, path, written),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn unknown(verdict: &mut Verdict, path: Path<'_>, node: Node<'_>, name: &str) {
    let suggestion = text::suggestion(name, node.members());
    let valid = text::list(node.members());
    let others = &node.value()["additionalProperties"];
    if node.members().next().is_none() && others != false {
        // A map with names of the user's own.
    } else if name.ends_with(DEVELOPMENT) {
        let message = format!(
            "is not in the schema{suggestion}; only agents that know it read it; the schema has: {valid}"
        );
        verdict.warn("declarative-development", path, message);
    } else if others == false {
        verdict.reject(Cause::NotSupported, path, format!("is not a field{suggestion}; valid: {valid}"));
    } else {
        let message = format!(
            "is not in the schema{suggestion}; an extension of the agent has to bring it; the schema has: {valid}"
        );
        verdict.warn("declarative-unknown", path, message);
    }
}

fn check_text(verdict: &mut Verdict, path: Path<'_>, written: &str) {
    let malformed = declarative::parts(written).into_iter().any(|part| matches!(part, Part::Malformed(_)));
    if malformed {
        let message = "has a reference that agents cannot read, and no agent uses such a file; valid: ${NAME} or \
                       ${NAME:-default}, and $${ for the text itself";
        verdict.reject(Cause::Invalid, path, message);
    }
    let (name, _) = path.last_names();
    let headers = if name == "headers_list" { "OTEL_HEADERS" } else { "" };
    if !declarative::has_reference(written) && name != "value" && secret::is_credential(headers, written) {
        credential(verdict, path);
    }
}

/// A header of an exporter, or any other pair of a name and a value.
fn check_header(verdict: &mut Verdict, path: Path<'_>, name: Option<&Value>, value: Option<&Value>) {
    let (Some(name), Some(value)) = (name.and_then(Value::as_str), value.and_then(Value::as_str)) else {
        return;
    };
    let is_secret = secret::is_credential(name, value)
        || secret::is_credential("OTEL_HEADERS", &[name, "=", value].concat());
    if is_secret && !declarative::has_reference(value) {
        credential(verdict, path.member("value"));
    }
}

fn credential(verdict: &mut Verdict, path: Path<'_>) {
    let message = "looks like a credential, which everyone with read access to Instrumentations or pods can see; write \
                   ${NAME} and set the variable from a Secret by spec.env";
    verdict.warn("plain-credential", path, message);
}
