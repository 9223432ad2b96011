//! Which module of the program uses which, until modules are crates: ARCHITECTURE.md has the same table.

use std::{collections::BTreeSet, fs};

use crate::reference::source::{files, repository};

/// Each module of the program and those of its others that it may use.
const TABLE: [(&str, &[&str]); 16] = [
    ("manifest", &[]),
    ("telemetry", &[]),
    ("api_client", &[]),
    ("scope", &[]),
    ("reduced", &[]),
    ("served", &[]),
    ("unread", &[]),
    ("store", &["api_client", "manifest", "reduced", "scope", "served", "telemetry"]),
    ("admission", &["store", "telemetry"]),
    ("tls", &["scope", "telemetry"]),
    ("server", &["admission", "page", "telemetry"]),
    ("subject", &[]),
    ("registration", &["server", "subject"]),
    ("page", &[]),
    (
        "controller",
        &["api_client", "reduced", "registration", "scope", "served", "store", "telemetry", "unread"],
    ),
    (
        "cli",
        &[
            "admission",
            "api_client",
            "controller",
            "manifest",
            "page",
            "reduced",
            "registration",
            "scope",
            "served",
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

/// The modules that `crate::…` names in the code of a file, outside of its tests.
fn named(text: &str) -> BTreeSet<String> {
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let code: String = code.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect();
    let name = |path: &str| {
        path.trim_start().chars().take_while(|one| one.is_ascii_lowercase() || *one == '_').collect()
    };
    let mut found = BTreeSet::new();
    for path in code.split("crate::").skip(1) {
        let Some(group) = path.strip_prefix('{') else {
            found.insert(name(path));
            continue;
        };
        let mut depth = 0;
        let mut count = |one: char| {
            depth += i32::from(one == '{') - i32::from(one == '}');
            depth
        };
        // Behind the group the depth is -1, and so it is at the commas between its items when they are read again.
        let group: String = group.chars().take_while(|one| count(*one) >= 0).collect();
        found.extend(group.split(|one| count(one) == -1 && one == ',').map(name));
    }
    // Behind the last comma of a group.
    found.remove("");
    found
}

#[test]
fn names_are_found_in_paths_and_groups() {
    let code = "use crate::{\n    a::{b, c},\n    d,\n};\nuse crate::{i, j::K};\n// crate::x\nfn e() { crate::f::g(h, i) }\n#[cfg(test)]\nuse crate::t;";
    assert_eq!(named(code).into_iter().collect::<Vec<_>>(), ["a", "d", "f", "i", "j"]);
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let mut seen = BTreeSet::new();
    let root = repository("src");
    for path in files(&root, "rs").iter().filter(|path| !path.ends_with("tests.rs")) {
        let inner = path.strip_prefix(&root).expect("below it").with_extension("");
        let from = inner.iter().next().and_then(|name| name.to_str()).expect("a name").to_owned();
        let text = fs::read_to_string(path).expect("a source file");
        for to in named(&text).into_iter().filter(|to| *to != from && TABLE.iter().any(|row| row.0 == to)) {
            let row = TABLE.iter().find(|row| row.0 == from);
            let (_, allowed) = row.unwrap_or_else(|| panic!("the module {from} is not in the table"));
            assert!(allowed.contains(&&*to), "{from} may not use {to}: {}", path.display());
            seen.insert((from.clone(), to));
        }
    }
    for (from, allowed) in TABLE {
        for to in allowed {
            assert!(seen.contains(&(from.to_owned(), (*to).to_owned())), "{from} does not use {to} any more");
        }
    }
}

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
