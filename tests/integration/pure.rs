//! What decides has no I/O. Which crate may use which is for Cargo to say.

use std::fs;

use crate::reference::source::{files, repository};

/// The crates that decide: the same input gives the same answer.
const PURE: [&str; 4] = ["crates/api/src", "crates/fleet/src", "crates/inject/src", "crates/review/src"];

/// What those may not reach: I/O, clocks, the environment.
const IMPURE: [&str; 6] = ["std::fs", "std::env", "std::net", "std::time", "std::io", "println!"];

#[test]
fn decisions_depend_on_their_input_only() {
    for path in PURE.iter().flat_map(|folder| files(&repository(folder), "rs")) {
        let text = fs::read_to_string(&path).expect("a source file");
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for forbidden in IMPURE {
            assert!(!code.contains(forbidden), "{} has {forbidden}", path.display());
        }
    }
}
