//! One document of a stream.

use serde_json::Value;

/// How a document is written.
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
    /// Which document of its stream it is, from one on.
    pub number: usize,
    /// The line at which its content begins, from one on.
    pub line: usize,
    /// How it is written.
    pub syntax: Syntax,
    /// What stands before the content: the `---` line, directives, comments.
    pub head: &'t str,
    /// The content as it came.
    pub text: &'t str,
    /// The object; null for a document with nothing in it.
    pub value: Value,
}

impl Document<'_> {
    /// Whether there is nothing in it, or comments alone.
    pub fn is_blank(&self) -> bool {
        self.value.is_null()
    }
}
