//! YAML documents: read as `kubectl` reads them, and written so that it reads the same.

use serde_json::Value;
use serde_saphyr::{Budget, Options};

use super::{
    document::{Document, Syntax},
    error::{Failure, Problem},
    split::Part,
};

/// How deep a document may be nested, as for JSON.
const DEPTH: usize = 128;

/// Reads the one document of a part.
pub fn document<'t>(part: &Part<'t>, number: usize) -> Result<Document<'t>, Failure> {
    let (text, first_line) = part.yaml(part.line);
    let value = if part.is_blank() {
        Value::Null
    } else {
        serde_saphyr::from_str_with_options(&text, options())
            .map_err(|error| failure(&error, number, first_line))?
    };
    Ok(Document { number, line: part.line, syntax: Syntax::Yaml, head: part.head, text: part.body, value })
}

/// YAML as the API server's clients read it: booleans and octal numbers as in
/// YAML 1.1, so that `yes` is true and `0777` is 511.
fn options() -> Options {
    serde_saphyr::options! {
        budget: budget(),
        legacy_octal_numbers: true,
        with_snippet: false,
        emit_comments: false,
    }
}

/// The default limits are for small files. A stream may hold a whole cluster;
/// what stays limited is what a short text can blow up: depth and aliases.
fn budget() -> Option<Budget> {
    serde_saphyr::budget! {
        max_depth: DEPTH,
        flow_nesting_limit: DEPTH,
        max_events: usize::MAX,
        max_nodes: usize::MAX,
        max_aliases: usize::MAX,
        max_anchors: usize::MAX,
        max_merge_keys: usize::MAX,
        max_total_scalar_bytes: usize::MAX,
        max_total_comment_bytes: usize::MAX,
        enforce_alias_anchor_ratio: false,
    }
}

/// What the parser says, with its place in the stream instead of the document.
fn failure(error: &serde_saphyr::Error, document: usize, first_line: usize) -> Failure {
    let place = error.location().unwrap_or(serde_saphyr::Location::UNKNOWN);
    let line = usize::try_from(place.line()).unwrap_or_default();
    let text = error.to_string();
    let suffix = format!(" at line {}, column {}", place.line(), place.column());
    let message = match error {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key \"{key}\" stands twice in one object")
        }
        _ => text.strip_suffix(&suffix).unwrap_or(&text).to_owned(),
    };
    Failure {
        document,
        line: first_line + line.saturating_sub(1),
        problem: Problem::NotYaml { message, column: place.column() },
    }
}

/// How YAML is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether the items of a list stand further in than the key that they belong to.
    pub indented_lists: bool,
}

impl Style {
    /// The layout of a text: that of its first list.
    pub fn of(text: &str) -> Self {
        let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let lines = || text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let first_list = lines()
            .zip(lines().skip(1))
            .find(|(key, item)| key.trim_end().ends_with(':') && item.trim_start().starts_with("- "));
        Self { indented_lists: first_list.is_some_and(|(key, item)| indent(item) > indent(key)) }
    }
}

/// Writes a value as YAML, with a line feed at its end.
pub fn write(value: &Value, style: Style) -> String {
    let options = serde_saphyr::ser_options! {
        compact_list_indent: !style.indented_lists,
        // Text of several lines reads best as it is; long lines are never folded.
        folded_wrap_chars: usize::MAX,
    };
    let mut text = serde_saphyr::to_string_with_options(value, options)
        .expect("every JSON value can be written as YAML");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
