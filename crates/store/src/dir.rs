//! A directory of YAML and JSON files as the source.
//!
//! Reads the files `*.yaml`, `*.yml` and `*.json` in it, in the order of their names, but not those of
//! subdirectories. The files of a mounted ConfigMap are symlinks into a hidden directory, so symlinks are followed
//! and hidden names are skipped.

mod files;
mod follow;

use std::path::Path;

pub use files::{DEFAULT_NAMESPACE, SourceError, files};
pub use follow::Follower;

use super::Writer;
use files::{documents, read_file};

/// Adds all objects of a directory. `namespace` is the namespace of objects that specify none.
///
/// # Errors
/// If the directory or one of its files cannot be read, or a file is not a stream of Kubernetes objects.
pub fn read(dir: &Path, namespace: &str, writer: &mut Writer) -> Result<(), SourceError> {
    for path in files(dir, false)? {
        let text = read_file(&path)?;
        for document in documents(&path, &text)? {
            writer.put_document(&document.value, namespace);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use otel_webhook_api::defaults::DefaultImages;

    #[test]
    fn the_error_of_a_file_has_document_and_line() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), "apiVersion: v1\nkind: Namespace\n---\nkind: [\n").unwrap();
        let mut writer = Writer::new(DefaultImages::default());
        let error = read(dir.path(), DEFAULT_NAMESPACE, &mut writer).unwrap_err().to_string();
        assert!(error.contains("a.yaml: document 2, line 4: invalid YAML"), "{error}");
    }
}
