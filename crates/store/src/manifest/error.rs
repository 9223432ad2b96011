//! Errors in documents.

use otel_webhook_api::Version;
use thiserror::Error;

/// An invalid document, and its position.
#[derive(Debug, Error)]
#[error("{origin}: document {document}, line {line}: {problem}")]
pub struct ManifestError {
    /// The name of the stream, such as its file.
    pub origin: String,
    /// The number of the document, from 1.
    pub document: usize,
    /// The line of the stream, from 1.
    pub line: usize,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

/// The problem of a document.
#[derive(Debug, Error)]
pub enum Problem {
    /// It is not valid YAML.
    #[error("invalid YAML: {message} (column {column})")]
    NotYaml {
        /// The message of the parser.
        message: String,
        /// The column.
        column: u64,
    },
    /// It is not valid JSON.
    #[error("invalid JSON: {message} (column {column})")]
    NotJson {
        /// The message of the parser.
        message: String,
        /// The column.
        column: usize,
    },
    /// The document is a list or a plain value.
    #[error("expected a Kubernetes object with apiVersion and kind, found {found}")]
    NotAnObject {
        /// The type of the value.
        found: &'static str,
    },
    /// It is an Instrumentation of a version that is not known.
    #[error("apiVersion of {object}: \"{found}\" of an Instrumentation is not known; known are {}",
        Version::ALL.map(Version::api_version).join(" and "))]
    UnknownVersion {
        /// The object: the document, or an item of it.
        object: String,
        /// Its version.
        found: String,
    },
    /// `apiVersion` or `kind` is missing or invalid.
    #[error(
        "{object} has no \"{field}\"{found}; every object needs apiVersion and kind, such as \
         \"apiVersion: apps/v1\" and \"kind: Deployment\""
    )]
    Untyped {
        /// The object: the document, or an item of it.
        object: String,
        /// `apiVersion` or `kind`.
        field: &'static str,
        /// The text about an invalid value; empty if there is none.
        found: String,
    },
}

/// An error without the name of the stream.
#[derive(Debug)]
pub struct Failure {
    /// The number of the document.
    pub document: usize,
    /// The line of the stream.
    pub line: usize,
    /// What is wrong.
    pub problem: Problem,
}

impl Failure {
    /// Adds the name of the stream.
    pub fn of(self, origin: &str) -> ManifestError {
        let Self { document, line, problem } = self;
        ManifestError { origin: origin.to_owned(), document, line, problem }
    }
}
