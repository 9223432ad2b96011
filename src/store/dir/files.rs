//! The files of a directory, and their documents.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::manifest::{self, Document, ManifestError};

/// The namespace of objects in files that specify none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Why a directory or one of its files cannot be used.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The directory or one of its files cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The content of a file is invalid.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// Returns the files of a directory to read, sorted.
pub fn files(dir: &Path) -> Result<Vec<PathBuf>, SourceError> {
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
    // A pipe or a device with such a name would block the reader forever. A dangling symlink is reported as a file that
    // cannot be read.
    let is_file = || std::fs::metadata(path).map_or(true, |metadata| metadata.is_file());
    is_named_so && !name.starts_with('.') && is_file()
}

/// Reads a file completely.
pub fn read_file(path: &Path) -> Result<String, SourceError> {
    std::fs::read_to_string(path).map_err(|source| SourceError::Unreadable { path: path.to_owned(), source })
}

/// Returns the documents of a file.
pub fn documents<'t>(path: &Path, text: &'t str) -> Result<Vec<Document<'t>>, ManifestError> {
    manifest::read(text, &path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_in_order_without_subdirectories() {
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
}
