//! The files of a directory, and their documents.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

#[cfg(unix)]
use rustix::fs::OFlags;
use thiserror::Error;

use crate::manifest::{self, Document, ManifestError};

/// The namespace of objects in files that specify none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The maximum size of a file: four times what a ConfigMap can have.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

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
    /// A file is too large.
    #[error("{}: the file has more than 4 MiB, which is the maximum; split it into several files", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
    },
    /// The content of a file is invalid.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// Returns the files of a directory to read, sorted; with those of its subdirectories, if it is read recursively.
/// Symlinks to directories are not followed.
///
/// # Errors
/// If a directory cannot be read.
pub fn files(dir: &Path, is_recursive: bool) -> Result<Vec<PathBuf>, SourceError> {
    let unreadable = |source| SourceError::Unreadable { path: dir.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        if is_hidden(&path) {
            continue;
        }
        if is_manifest(&path) {
            found.push(path);
        } else if is_recursive && entry.file_type().map_err(unreadable)?.is_dir() {
            found.extend(files(&path, true)?);
        }
    }
    found.sort();
    Ok(found)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().unwrap_or_default().to_string_lossy().starts_with('.')
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    let is_named_so = ["yaml", "yml", "json"].iter().any(|known| extension == *known);
    // A pipe or a device with such a name would block the reader forever. A dangling symlink is reported as a file that
    // cannot be read.
    let is_file = || std::fs::metadata(path).map_or(true, |metadata| metadata.is_file());
    is_named_so && is_file()
}

/// Reads a file completely, unless it is too large.
pub fn read_file(path: &Path) -> Result<String, SourceError> {
    let unreadable = |source| SourceError::Unreadable { path: path.to_owned(), source };
    let file = open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unreadable(io::Error::other("it is not a regular file")));
    }
    let mut bytes = Vec::new();
    // A file may grow while it is read.
    if metadata.len() <= MOST_BYTES {
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    }
    if metadata.len().max(bytes.len() as u64) > MOST_BYTES {
        return Err(SourceError::TooLarge { path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|_| unreadable(io::Error::other("it is not valid UTF-8")))
}

/// Opens a file without waiting for the other end, if it has become a pipe since it was listed.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, OFlags::NONBLOCK.bits().cast_signed());
    options.open(path)
}

/// Returns the documents of a file.
pub fn documents<'t>(path: &Path, text: &'t str) -> Result<Vec<Document<'t>>, ManifestError> {
    manifest::read(text, &path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let (path, most) = (dir.path().join("a.yaml"), usize::try_from(MOST_BYTES).unwrap());
        std::fs::write(&path, " ".repeat(most)).unwrap();
        assert_eq!(read_file(&path).unwrap().len(), most);
        std::fs::write(&path, " ".repeat(most + 1)).unwrap();
        let error = read_file(&path).unwrap_err().to_string();
        let expected =
            "a.yaml: the file has more than 4 MiB, which is the maximum; split it into several files";
        assert!(error.ends_with(expected), "{error}");
        std::fs::write(&path, [0xFF]).unwrap();
        let error = read_file(&path).unwrap_err().to_string();
        assert!(error.ends_with("a.yaml: it is not valid UTF-8"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_are_neither_listed_nor_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe.yaml");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink("pipe.yaml", dir.path().join("link.yaml")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("zero.yaml")).unwrap();
        assert_eq!(files(dir.path(), true).unwrap(), Vec::<PathBuf>::new());
        // As if it had been a file when it was listed.
        for name in ["pipe.yaml", "link.yaml", "zero.yaml"] {
            let error = read_file(&dir.path().join(name)).unwrap_err().to_string();
            assert!(error.ends_with(&format!("{name}: it is not a regular file")), "{error}");
        }
    }

    #[test]
    fn files_are_read_in_order_and_those_of_subdirectories_if_that_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("folder.yaml")).unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        for name in
            ["b.yml", "a.yaml", "c.json", ".hidden.yaml", ".git/e.yaml", "notes.txt", "sub/d.yaml", "yaml"]
        {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let names = |is_recursive: bool| {
            let files = files(dir.path(), is_recursive).unwrap();
            let name = |path: &PathBuf| path.strip_prefix(dir.path()).unwrap().display().to_string();
            files.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["a.yaml", "b.yml", "c.json"]);
        assert_eq!(names(true), ["a.yaml", "b.yml", "c.json", "sub/d.yaml"]);
    }
}
