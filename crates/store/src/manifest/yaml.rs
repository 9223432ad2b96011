//! YAML documents: read like `kubectl` does, and written so that the result reads the same.

use serde_json::Value;
use serde_saphyr::{Budget, Options};

use super::{
    document::{Document, Syntax},
    error::{Failure, Problem},
    split::Part,
};

/// The maximum nesting depth, as for JSON.
const DEPTH: usize = 128;

/// Reads the document of a part.
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

/// Returns options to read YAML like `kubectl`: with booleans and octal numbers of YAML 1.1, so that `yes` is true and
/// `0777` is 511.
fn options() -> Options {
    serde_saphyr::options! {
        budget: budget(),
        legacy_octal_numbers: true,
        with_snippet: false,
        emit_comments: false,
    }
}

/// Returns the limits. The defaults are for small files, but a stream may contain the objects of a whole cluster. Depth
/// and aliases, by which a short text can use much memory, remain limited.
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

/// Returns the error of the parser with its position in the stream instead of the document.
fn failure(error: &serde_saphyr::Error, document: usize, first_line: usize) -> Failure {
    let place = error.location().unwrap_or(serde_saphyr::Location::UNKNOWN);
    let line = usize::try_from(place.line()).unwrap_or_default();
    let text = error.to_string();
    let suffix = format!(" at line {}, column {}", place.line(), place.column());
    let message = match error {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("duplicate key \"{key}\" in an object")
        }
        _ => text.strip_suffix(&suffix).unwrap_or(&text).to_owned(),
    };
    Failure {
        document,
        line: first_line + line.saturating_sub(1),
        problem: Problem::NotYaml { message, column: place.column() },
    }
}

/// The style of YAML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether the items of a list are indented more than their key.
    pub indented_lists: bool,
}

impl Style {
    /// Detects the style of a text from its first list.
    pub fn of(text: &str) -> Self {
        let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let lines = || text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let first_list = lines()
            .zip(lines().skip(1))
            .find(|(key, item)| key.trim_end().ends_with(':') && item.trim_start().starts_with("- "));
        Self { indented_lists: first_list.is_some_and(|(key, item)| indent(item) > indent(key)) }
    }
}

/// Writes a value as YAML, with a trailing newline.
pub fn write(value: &Value, style: Style) -> String {
    let options = serde_saphyr::ser_options! {
        compact_list_indent: !style.indented_lists,
        // Strings of several lines are block scalars, and long lines are never folded.
        folded_wrap_chars: usize::MAX,
    };
    let mut text = serde_saphyr::to_string_with_options(value, options)
        .expect("every JSON value can be written as YAML");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
