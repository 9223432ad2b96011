//! What the sources say: names and log events, read as text.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;

/// The folders with the code of the program.
const CODE: [&str; 6] = [
    "src",
    "crates/api/src",
    "crates/fleet/src",
    "crates/inject/src",
    "crates/managed-certs/src",
    "crates/review/src",
];

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The text of a file of the repository.
pub fn text(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files below a folder with this ending, in order.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The code of the program without its tests and comments, file by file.
pub fn code() -> Vec<String> {
    let mut texts = Vec::new();
    for path in CODE.iter().flat_map(|folder| files(&repository(folder), "rs")) {
        if path.file_name().is_some_and(|name| name == "tests.rs") || path.iter().any(|part| part == "tests")
        {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        texts.push(lines.collect::<Vec<_>>().join("\n"));
    }
    texts
}

/// A log event: its level, its message and the names of its fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    pub level: String,
    pub message: String,
    pub fields: Vec<String>,
}

/// The log events of the program.
pub fn events() -> Vec<Event> {
    let start = Regex::new(r"\b(error|warn|info|debug)!\(").expect("an expression");
    let mut found = Vec::new();
    for code in code() {
        for call in start.captures_iter(&code) {
            let whole = call.get(0).expect("the match");
            found.extend(event(&call[1], &code[whole.end()..]));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The event of a call whose arguments begin here. None if its last argument is no text, as in macros.
fn event(level: &str, rest: &str) -> Option<Event> {
    let mut arguments = arguments(rest);
    let place = arguments.iter().position(|argument| argument.starts_with('"'))?;
    let message = arguments[place].trim_matches('"').replace("\\n", " ");
    // A backslash at the end of a line joins the next one.
    let message = Regex::new(r"\\\s+").expect("an expression").replace_all(&message, "").into_owned();
    arguments.truncate(place);
    let name = |argument: &String| {
        let name = argument.split(" = ").next().unwrap_or_default();
        name.trim_start_matches(['%', '?']).to_owned()
    };
    Some(Event { level: level.to_owned(), message, fields: arguments.iter().map(name).collect() })
}

/// The arguments of a call, to its closing parenthesis.
fn arguments(rest: &str) -> Vec<String> {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let (mut found, mut now) = (Vec::new(), String::new());
    for character in rest.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(now.trim().to_owned());
                now.clear();
                continue;
            }
            _ => {}
        }
        now.push(character);
    }
    found.push(now.trim().to_owned());
    found.retain(|argument| !argument.is_empty());
    found
}

#[test]
fn an_event_has_its_message_and_its_fields() {
    let read = event("warn", "lookup = ?question(1, 2), %problem, \"a \\\"lookup\\\", (failed)\"); more()");
    let read = read.expect("an event");
    assert_eq!(read.fields, ["lookup", "problem"]);
    assert_eq!(read.message, "a \\\"lookup\\\", (failed)");
}
