//! Who may use whom, kept by reading the imports: ARCHITECTURE.md has the same tables.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use otel_webhook_testkit::imports::Imports;

/// The crates of the workspace, in which no file imports itself by way of others.
const ROOTS: [&str; 7] = [
    "crates/api/src/lib.rs",
    "crates/fleet/src/lib.rs",
    "crates/inject/src/lib.rs",
    "crates/managed-certs/src/lib.rs",
    "crates/review/src/lib.rs",
    "crates/testkit/src/lib.rs",
    "src/lib.rs",
];

/// Each module of the program and those of its others that it may use.
const TABLE: [(&str, &[&str]); 14] = [
    ("manifest", &[]),
    ("telemetry", &[]),
    ("scope", &[]),
    ("reduced", &[]),
    ("unread", &[]),
    ("store", &["manifest", "reduced", "scope", "telemetry"]),
    ("admission", &["store", "telemetry"]),
    ("tls", &["telemetry"]),
    ("server", &["admission", "page", "telemetry"]),
    ("subject", &[]),
    ("registration", &["server", "subject"]),
    ("page", &[]),
    ("controller", &["reduced", "registration", "scope", "store", "telemetry", "unread"]),
    (
        "cli",
        &[
            "admission",
            "controller",
            "manifest",
            "page",
            "registration",
            "scope",
            "server",
            "store",
            "subject",
            "telemetry",
            "tls",
            "unread",
        ],
    ),
];

/// The crates that decide: the same input gives the same answer.
const PURE: [&str; 4] = ["crates/api/src", "crates/fleet/src", "crates/inject/src", "crates/review/src"];

/// What those may not reach: I/O, clocks, the environment.
const IMPURE: [&str; 6] = ["std::fs", "std::env", "std::net", "std::time", "std::io", "println!"];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_file_imports_itself_by_way_of_others() {
    for root in ROOTS {
        let circles = Imports::read(&repository().join(root)).circles();
        let lines: Vec<_> = circles.iter().map(|(from, to)| format!("{from} imports {to}")).collect();
        assert!(circles.is_empty(), "{root}: files import one another in circles:\n{}", lines.join("\n"));
    }
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let mut seen = BTreeSet::new();
    let module = |path: &str| path.split("::").next().expect("a name").to_owned();
    for (from, to) in Imports::read(&repository().join("src/lib.rs")).edges() {
        let (from, to) = (module(&from), module(&to));
        if from == "crate" || from == to {
            continue;
        }
        let row = TABLE.iter().find(|row| row.0 == from);
        let (_, allowed) = row.unwrap_or_else(|| panic!("the module {from} is not in the table"));
        assert!(allowed.contains(&to.as_str()), "{from} may not use {to}");
        seen.insert((from, to));
    }
    for (from, allowed) in TABLE {
        for to in allowed {
            assert!(seen.contains(&(from.to_owned(), (*to).to_owned())), "{from} does not use {to} any more");
        }
    }
}

#[test]
fn decisions_depend_on_their_input_only() {
    for path in PURE.iter().flat_map(|folder| sources(&repository().join(folder))) {
        let text = fs::read_to_string(&path).expect("a source file");
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for forbidden in IMPURE {
            assert!(!code.contains(forbidden), "{} has {forbidden}", path.display());
        }
    }
}
