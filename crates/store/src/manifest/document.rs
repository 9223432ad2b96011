//! One document of a stream.

use serde_json::Value;

/// The syntax of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// YAML.
    Yaml,
    /// JSON: the document starts with `{` or `[`.
    Json,
}

/// One document of a stream.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    /// Its number in the stream, from 1.
    pub number: usize,
    /// The line on which its content begins, from 1.
    pub line: usize,
    /// Its syntax.
    pub syntax: Syntax,
    /// The text before the content: the `---` line, directives, comments.
    pub head: &'t str,
    /// The text of the content.
    pub text: &'t str,
    /// The object; null for a blank document.
    pub value: Value,
}

impl Document<'_> {
    /// Returns whether it is empty, or contains only comments.
    pub fn is_blank(&self) -> bool {
        self.value.is_null()
    }
}
