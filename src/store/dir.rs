//! A directory of YAML and JSON files as the source.
//!
//! Read are the files named `*.yaml`, `*.yml` and `*.json` in it, in the order
//! of their names; not those of its folders. A mounted ConfigMap shows its
//! files as links into a hidden folder, so links are followed and hidden names
//! are left alone.

mod follow;

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

pub use follow::Follower;

use super::Writer;
use crate::manifest::{self, Document, ManifestError};

/// The namespace of objects in files that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Why a directory or a file of it cannot be used.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The directory or a file of it cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// What cannot be read.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file's content cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

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

/// The files of a directory that are read, sorted.
fn files(dir: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let unreadable = |source| SourceError::Unreadable { path: dir.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if is_manifest(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn is_manifest(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default();
    let is_named_so = ["yaml", "yml", "json"].iter().any(|known| extension == *known);
    // A pipe or a device that is named so would hold the reader up for ever. A
    // link that leads nowhere is a file that cannot be read, and is said so.
    let is_file = || std::fs::metadata(path).map_or(true, |metadata| metadata.is_file());
    is_named_so && !name.starts_with('.') && is_file()
}

fn read_file(path: &Path) -> Result<String, SourceError> {
    std::fs::read_to_string(path).map_err(|source| SourceError::Unreadable { path: path.to_owned(), source })
}

fn documents<'t>(path: &Path, text: &'t str) -> Result<Vec<Document<'t>>, ManifestError> {
    manifest::read(text, &path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use otel_webhook_api::defaults::DefaultImages;

    #[test]
    fn only_files_of_the_directory_itself_are_read_in_the_order_of_their_names() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("folder.yaml")).unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        for name in ["b.yml", "a.yaml", "c.json", ".hidden.yaml", "notes.txt", "sub/d.yaml", "yaml"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let files = files(dir.path()).unwrap();
        let names: Vec<_> = files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a.yaml", "b.yml", "c.json"]);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_document_and_line() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), "apiVersion: v1\nkind: Namespace\n---\nkind: [\n").unwrap();
        let mut writer = Writer::new(DefaultImages::default());
        let error = read(dir.path(), DEFAULT_NAMESPACE, &mut writer).unwrap_err().to_string();
        assert!(error.contains("a.yaml: document 2, line 4: this is not YAML"), "{error}");
    }
}
