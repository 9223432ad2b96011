//! Files of the repository.

use std::{fs, path::PathBuf};

/// The path of a file or folder of the repository.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(name)
}

/// An AdmissionReview as an API server sent it (`tests/data/captured`).
pub fn captured(name: &str) -> String {
    fs::read_to_string(path(&format!("tests/data/captured/{name}.json"))).expect("a captured review")
}
