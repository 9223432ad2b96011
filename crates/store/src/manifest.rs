//! Streams of YAML or JSON documents, as `kubectl` reads them.
//!
//! ```text
//! text ─ split ──> parts between `---` lines ─ json | yaml ──> documents, each with its text and value
//! ```
//!
//! The text of every document is kept, so that unchanged documents are written as they were.

mod document;
mod error;
mod json;
mod list;
mod split;
mod yaml;

pub use document::{Document, Syntax};
pub use error::{ManifestError, Problem};
pub use json::compact;
pub use list::{TypeMeta, item_type, items};
pub use yaml::{Style, write};

/// Reads a stream. `origin` is its name in messages.
///
/// Documents are separated by `---` lines; JSON objects need no separator. Every document that is not blank has to be
/// a Kubernetes object with `apiVersion` and `kind`.
///
/// # Errors
/// If a document is neither YAML nor JSON, or not a Kubernetes object.
pub fn read<'t>(text: &'t str, origin: &str) -> Result<Vec<Document<'t>>, ManifestError> {
    let mut documents = Vec::new();
    for part in split::parts(text) {
        let number = documents.last().map_or(0, |last: &Document<'_>| last.number);
        // An empty part without a `---` line is the end of the last document.
        let number = if part.is_marked || !part.is_blank() { number + 1 } else { number };
        let read = if part.starts_as_json() {
            json::documents(&part, number, &mut documents)
        } else {
            yaml::document(&part, number).map(|document| documents.push(document))
        };
        read.map_err(|failure| failure.of(origin))?;
    }
    for document in documents.iter().filter(|document| !document.is_blank()) {
        list::check(&document.value).map_err(|problem| ManifestError {
            origin: origin.to_owned(),
            document: document.number,
            line: document.line,
            problem,
        })?;
    }
    Ok(documents)
}

#[cfg(test)]
mod tests;
