//! `spec.declarativeConfig`: the file by which agents configure their SDK, and the schemas of its formats.
//!
//! The schemas are those of open-telemetry/opentelemetry-configuration (`declarative/README.md`). The field holds the
//! document, and two members that only injection reads.

use std::sync::LazyLock;

use serde_json::{Map, Value};

/// The field of the specification.
pub const FIELD: &str = "declarativeConfig";

/// What happens to a pod with an agent that cannot use the file; no member of the file.
pub const ON_UNSUPPORTED: &str = "onUnsupported";

/// The valid values of [`ON_UNSUPPORTED`]; the first one is the default.
pub const ON_UNSUPPORTED_VALUES: [&str; 2] = ["skip", "env"];

/// Whether an image that is not known to use the file is expected to; no member of the file.
pub const ASSUME_SUPPORTED: &str = "assumeSupported";

/// The known formats (`file_format`), each with its schema.
static FORMATS: LazyLock<[(&str, Value); 2]> = LazyLock::new(|| {
    let parse = |text| serde_json::from_str(text).expect("a test parses every schema");
    [
        ("1.0", parse(include_str!("declarative/1.0.json"))),
        ("1.1", parse(include_str!("declarative/1.1.json"))),
    ]
});

/// The names of the known formats.
pub fn formats() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|(name, _)| *name)
}

/// The schema of a format, by its position in [`formats`].
pub fn schema(format: usize) -> Node<'static> {
    let root = &FORMATS[format].1;
    Node { root, schema: root }
}

/// The position of a document's format in [`formats`], if it is known.
pub fn format_of(document: &Value) -> Option<usize> {
    let name = document["file_format"].as_str()?;
    formats().position(|known| known == name)
}

/// The document of the field: without the members that are no part of the file.
pub fn document(field: &Value) -> Value {
    let members = field.as_object().into_iter().flatten();
    let kept = members.filter(|(name, _)| *name != ON_UNSUPPORTED && *name != ASSUME_SUPPORTED);
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// A part of a schema.
#[derive(Clone, Copy, Debug)]
pub struct Node<'s> {
    root: &'s Value,
    schema: &'s Value,
}

impl<'s> Node<'s> {
    /// The part itself.
    pub fn value(self) -> &'s Value {
        self.schema
    }

    fn at(self, schema: &'s Value) -> Self {
        let reference = schema["$ref"].as_str().and_then(|path| self.root.pointer(path.strip_prefix('#')?));
        Self { schema: reference.unwrap_or(schema), ..self }
    }

    /// The known members of an object.
    pub fn members(self) -> impl Iterator<Item = &'s str> {
        self.schema["properties"].as_object().into_iter().flat_map(Map::keys).map(String::as_str)
    }

    /// The schema of a known member.
    pub fn member(self, name: &str) -> Option<Self> {
        self.schema["properties"].get(name).map(|schema| self.at(schema))
    }

    /// The schema of the items of a list.
    pub fn item(self) -> Option<Self> {
        self.schema.get("items").map(|schema| self.at(schema))
    }

    /// The schema of what a path of names and positions leads to.
    pub fn below<'n>(self, path: impl IntoIterator<Item = &'n str>) -> Option<Self> {
        path.into_iter().try_fold(self, |node, name| node.member(name).or_else(|| node.item()))
    }

    /// Whether a value of a type is valid.
    pub fn allows(self, kind: &str) -> bool {
        match &self.schema["type"] {
            Value::Array(kinds) => kinds.iter().any(|one| one == kind),
            Value::Null => true,
            one => one == kind,
        }
    }
}

/// A part of a text with references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'t> {
    /// Text; a `$` that was written as `$$` is still doubled.
    Text(&'t str),
    /// `${NAME}` or `${NAME:-default}`.
    Reference {
        /// The variable.
        name: &'t str,
        /// The value if it is not set or empty.
        default: Option<&'t str>,
    },
    /// What begins like a reference and is none: an agent does not read such a file.
    Malformed(&'t str),
}

/// The parts of a text, by the rules of the file's variable substitution: `$$` stands for `$`.
pub fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(found) = text[at..].find('$').map(|found| at + found) {
        let behind = &text[found + 1..];
        if let Some(inner) = behind.strip_prefix('{') {
            if start < found {
                parts.push(Part::Text(&text[start..found]));
            }
            let end = inner.find('}').filter(|end| !inner[..*end].contains('\n'));
            let written = end.map_or(inner, |end| &inner[..end]);
            parts.push(match end {
                Some(_) => reference(written),
                None => Part::Malformed(written),
            });
            at = found + 2 + written.len() + usize::from(end.is_some());
            start = at;
        } else {
            at = found + 1 + usize::from(behind.starts_with('$'));
        }
    }
    if start < text.len() {
        parts.push(Part::Text(&text[start..]));
    }
    parts
}

fn reference(written: &str) -> Part<'_> {
    let (name, default) = match written.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (written, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_name { Part::Reference { name, default } } else { Part::Malformed(written) }
}

/// Whether a text refers to a variable.
pub fn has_reference(text: &str) -> bool {
    parts(text).iter().any(|part| !matches!(part, Part::Text(_)))
}

/// Whether an `OTEL_` variable is read although there is a file: by injection, which extends it, or by an agent.
pub fn is_read_with_file(name: &str) -> bool {
    const STARTS: [&str; 9] = [
        "OTEL_CONFIG_FILE",
        "OTEL_EXPERIMENTAL_",
        "OTEL_SERVICE_NAME",
        "OTEL_RESOURCE_ATTRIBUTES",
        "OTEL_JAVAAGENT_",
        "OTEL_DOTNET_AUTO_",
        "OTEL_NODE_",
        "OTEL_PYTHON_",
        "OTEL_GO_AUTO_",
    ];
    STARTS.iter().any(|start| name.starts_with(start))
}

/// Writes a document as YAML: every text in double quotes, except for references in the place of numbers and such,
/// since a quoted reference is text whatever its value is.
pub fn yaml(document: &Value) -> String {
    let mut text = String::new();
    write(&mut text, document, format_of(document).map(schema), 0);
    text
}

fn write(out: &mut String, value: &Value, node: Option<Node<'_>>, depth: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                begin(out, depth);
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write(out, value, node.and_then(|node| node.member(name)), depth + 1);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                begin(out, depth);
                out.push('-');
                write(out, item, node.and_then(Node::item), depth + 1);
            }
        }
        Value::String(written)
            if has_reference(written) && node.is_some_and(|node| !node.allows("string")) =>
        {
            out.push(' ');
            out.push_str(written);
        }
        plain => {
            out.push(' ');
            out.push_str(&plain.to_string());
        }
    }
}

fn begin(out: &mut String, depth: usize) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.extend(std::iter::repeat_n(' ', depth));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_recognised_as_agents_do() {
        let name = |name| Part::Reference { name, default: None };
        for (text, expected) in [
            ("a", vec![Part::Text("a")]),
            ("${A}", vec![name("A")]),
            ("${env:A}/v1", vec![name("A"), Part::Text("/v1")]),
            ("${A:-x}", vec![Part::Reference { name: "A", default: Some("x") }]),
            ("$${A}", vec![Part::Text("$${A}")]),
            ("$$${A}", vec![Part::Text("$$"), name("A")]),
            ("5 $ a", vec![Part::Text("5 $ a")]),
            ("${1A}", vec![Part::Malformed("1A")]),
            ("a${A", vec![Part::Text("a"), Part::Malformed("A")]),
            ("${}", vec![Part::Malformed("")]),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
    }

    #[test]
    fn a_document_is_written_as_yaml_with_references_that_keep_their_types() {
        let document = json!({
            "file_format": "1.0",
            "resource": {"attributes_list": "${OTEL_RESOURCE_ATTRIBUTES:-}"},
            "tracer_provider": {
                "limits": {"attribute_count_limit": "${LIMIT:-64}"},
                "processors": [{"batch": {"exporter": {"console": {}}, "schedule_delay": 5}}],
            },
        });
        let text = yaml(&document);
        assert_eq!(
            text,
            "\"file_format\": \"1.0\"\n\
             \"resource\":\n \"attributes_list\": \"${OTEL_RESOURCE_ATTRIBUTES:-}\"\n\
             \"tracer_provider\":\n \"limits\":\n  \"attribute_count_limit\": ${LIMIT:-64}\n \"processors\":\n  -\n   \
             \"batch\":\n    \"exporter\":\n     \"console\": {}\n    \"schedule_delay\": 5"
        );
        let read: Value = serde_saphyr::from_str(&text).expect("YAML");
        assert_eq!(read, document);
    }
}
