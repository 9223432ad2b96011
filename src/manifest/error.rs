//! What can be wrong with a document.

use thiserror::Error;

/// A document that cannot be used, and where it is.
#[derive(Debug, Error)]
#[error("{origin}: document {document}, line {line}: {problem}")]
pub struct ManifestError {
    /// The file, or what else the stream is called.
    pub origin: String,
    /// Which document of the stream, from one on.
    pub document: usize,
    /// The line of the stream, from one on.
    pub line: usize,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a document.
#[derive(Debug, Error)]
pub enum Problem {
    /// The YAML parser stopped.
    #[error("this is not YAML: {message} (column {column})")]
    NotYaml {
        /// What the parser says.
        message: String,
        /// Where in the line.
        column: u64,
    },
    /// The JSON parser stopped.
    #[error("this is not JSON: {message} (column {column})")]
    NotJson {
        /// What the parser says.
        message: String,
        /// Where in the line.
        column: usize,
    },
    /// The document is a list or a plain value.
    #[error("this is {found}, not an object; a Kubernetes object has apiVersion and kind")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
    /// A field that tells what the object is does not say so.
    #[error(
        "{object} has no \"{field}\"{found}; every object needs apiVersion and kind, such as \
         \"apiVersion: apps/v1\" and \"kind: Deployment\""
    )]
    Untyped {
        /// The object: the document, or an item of it.
        object: String,
        /// `apiVersion` or `kind`.
        field: &'static str,
        /// What is there instead, with words before it; empty for nothing.
        found: String,
    },
}

/// A failure before it is known which stream it is of.
#[derive(Debug)]
pub struct Failure {
    /// Which document of the stream.
    pub document: usize,
    /// The line of the stream.
    pub line: usize,
    /// What is wrong.
    pub problem: Problem,
}

impl Failure {
    /// The same with the stream's name.
    pub fn of(self, origin: &str) -> ManifestError {
        let Self { document, line, problem } = self;
        ManifestError { origin: origin.to_owned(), document, line, problem }
    }
}
