//! A directory of YAML and JSON files as the source.
//!
//! Read are the files named `*.yaml`, `*.yml` and `*.json` in it, in the order
//! of their names; not those of its folders. A mounted ConfigMap shows its
//! files as links into a hidden folder, so links are followed and hidden names
//! are left alone.

mod files;
mod follow;

use std::path::Path;

pub use files::{DEFAULT_NAMESPACE, SourceError};
pub use follow::Follower;

use super::Writer;
use files::{documents, files, read_file};

/// Takes in all that a directory holds. `namespace` is that of objects which name none.
///
/// # Errors
/// When the directory or one of its files cannot be read, or a file is not a
/// stream of Kubernetes objects.
pub fn read(dir: &Path, namespace: &str, writer: &mut Writer) -> Result<(), SourceError> {
    for path in files(dir)? {
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
    fn a_file_that_cannot_be_used_is_named_with_document_and_line() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), "apiVersion: v1\nkind: Namespace\n---\nkind: [\n").unwrap();
        let mut writer = Writer::new(DefaultImages::default());
        let error = read(dir.path(), DEFAULT_NAMESPACE, &mut writer).unwrap_err().to_string();
        assert!(error.contains("a.yaml: document 2, line 4: this is not YAML"), "{error}");
    }
}
