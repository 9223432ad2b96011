//! Files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// The path of a file or folder of the repository.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(name)
}

/// An AdmissionReview as an API server sent it (`tests/data/captured`).
pub fn captured(name: &str) -> String {
    fs::read_to_string(path(&format!("tests/data/captured/{name}.json"))).expect("a captured review")
}

/// Replaces what a page has between two lines by a table.
pub fn replace_between(page: &Path, begin: &str, end: &str, table: &str) {
    let text = fs::read_to_string(page).expect("the page");
    let (before, rest) = text.split_once(begin).expect("the line before the table");
    let (_, after) = rest.split_once(end).expect("the line after the table");
    fs::write(page, [before, begin, "\n", table, "\n", end, after].concat())
        .expect("a page that can be written");
}

/// Reads a file in YAML.
pub fn yaml<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
