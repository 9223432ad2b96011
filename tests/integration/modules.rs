//! Who may use whom: the module table of ARCHITECTURE.md, kept by reading the imports.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Each module and those of ours that it may use.
const TABLE: [(&str, &[&str]); 10] = [
    ("api", &[]),
    ("manifest", &[]),
    ("telemetry", &[]),
    ("inject", &["api"]),
    ("review", &["api", "inject"]),
    ("store", &["api", "inject", "manifest", "telemetry"]),
    ("admission", &["api", "inject", "review", "store", "telemetry"]),
    ("tls", &["telemetry"]),
    ("server", &["admission", "telemetry", "tls"]),
    ("cli", &["admission", "api", "inject", "manifest", "server", "store", "telemetry", "tls"]),
];

/// What the core may not reach: I/O, clocks, environment, logging, the cluster.
const NOT_IN_THE_CORE: [&str; 11] = [
    "tokio",
    "axum",
    "hyper",
    "kube::",
    "tracing",
    "std::fs",
    "std::env",
    "std::net",
    "std::time",
    "std::io",
    "println!",
];

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

/// Folders of sources: the core's, and those of the rest of the program.
const CORE: &str = "core/src";
const REST: &str = "src";

/// The top-level module of a file, and its code without comments.
fn modules(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let read = |path: PathBuf| {
        let relative = path.strip_prefix(&root).expect("below it").to_string_lossy().into_owned();
        let module = relative.split(['/', '.']).next().expect("a name").to_owned();
        let text = fs::read_to_string(&path).expect("a source file");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        (module, code.collect::<Vec<_>>().join("\n"))
    };
    sources(&root).into_iter().map(read).collect()
}

/// The modules of ours that code names by `crate::name` or `crate::{name, …}`.
fn used(code: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        if let Some(group) = rest.strip_prefix('{') {
            used.extend(group_members(group));
        } else {
            used.insert(identifier(rest));
        }
    }
    used
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

/// The first name of each member of a group such as `{api::{A, B}, inject}`.
fn group_members(group: &str) -> Vec<String> {
    let (mut depth, mut members, mut start) = (0, Vec::new(), 0);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => {
                members.push(&group[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                members.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    members.into_iter().map(|member| identifier(member.trim())).filter(|name| !name.is_empty()).collect()
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let mut seen = BTreeSet::new();
    for (module, code) in modules(CORE).into_iter().chain(modules(REST)) {
        if ["lib", "main"].contains(&module.as_str()) {
            continue;
        }
        let row = TABLE.iter().find(|row| row.0 == module);
        let (_, allowed) = row.unwrap_or_else(|| panic!("the module {module} is not in the table"));
        for name in used(&code) {
            assert!(name == module || allowed.contains(&name.as_str()), "{module} may not use {name}");
        }
        seen.insert(module);
    }
    let missing: Vec<_> = TABLE.iter().map(|row| row.0).filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty(), "the table has modules that are not there: {missing:?}");
}

#[test]
fn the_core_is_pure() {
    for (_, code) in modules(CORE).into_iter().filter(|(module, _)| module != "api") {
        for forbidden in NOT_IN_THE_CORE {
            assert!(!code.contains(forbidden), "the core has {forbidden}");
        }
    }
}

#[test]
fn imports_are_understood() {
    let code = "use crate::api::A;\nuse crate::{inject::{self, pod::Pod}, store};\nlet x = crate::tls::y();";
    assert_eq!(used(code).into_iter().collect::<Vec<_>>(), ["api", "inject", "store", "tls"]);
}

#[test]
fn the_program_is_short_and_files_can_be_held_in_the_head() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in [REST, CORE, "tests"].iter().flat_map(|folder| sources(&root.join(folder))) {
        let lines = fs::read_to_string(&path).expect("a source file").lines().count();
        let most = if path.ends_with("src/main.rs") { 20 } else { 350 };
        assert!(lines <= most, "{} has {lines} lines, more than {most}", path.display());
    }
}
