//! The pages of docs/reference, which are written from the code.
//!
//! With `OTEL_WEBHOOK_WRITE_REFERENCE`, as `make generate` sets it, the pages are replaced; else they are compared.

#![allow(clippy::format_push_string, reason = "pages are small, and read better so")]

pub mod annotations;
mod chart_values;
pub mod command_line;
mod declarative;
mod exit_codes;
mod instrumentation;
pub mod metrics;
mod rbac;
pub mod reasons;
pub mod source;
mod stamp;

use std::{env, fmt::Display, fs, path::PathBuf};

/// A page: its file, and what writes it.
type Page = (&'static str, fn() -> String);

/// All of them.
pub const PAGES: [Page; 11] = [
    ("command-line.md", command_line::page),
    ("instrumentation.md", instrumentation::page),
    ("instrumentation-v1beta1.md", instrumentation::page_of_beta),
    ("annotations.md", annotations::page),
    ("chart-values.md", chart_values::page),
    ("declarative-config.md", declarative::page),
    ("reasons.md", reasons::page),
    ("metrics.md", metrics::page),
    ("stamp.md", stamp::page),
    ("rbac.md", rbac::page),
    ("exit-codes.md", exit_codes::page),
];

/// The file of a page.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/reference").join(name)
}

#[test]
fn the_reference_says_what_the_code_does() {
    for (name, page) in PAGES {
        let (file, expected) = (file(name), page());
        let written = fs::read_to_string(&file).unwrap_or_default();
        if written == expected {
            continue;
        }
        assert!(
            env::var_os("OTEL_WEBHOOK_WRITE_REFERENCE").is_some(),
            "docs/reference/{name} is out of date: run `make generate` and commit what it writes"
        );
        fs::write(&file, expected).expect("a page");
    }
}

/// The specification, which the code follows.
const BY_HAND: &str = "injection.md";

#[test]
fn every_other_file_of_the_reference_is_written_from_the_code() {
    for entry in fs::read_dir(file("")).expect("a folder").flatten() {
        let name = entry.file_name().into_string().expect("UTF-8");
        let is_written = name == BY_HAND || PAGES.iter().any(|page| page.0 == name);
        assert!(is_written, "docs/reference/{name} is written by nothing");
    }
}

/// The beginning of a page: its heading, what it is for, and that it is generated.
fn beginning(heading: &str, purpose: &str) -> String {
    format!(
        "# {heading}\n\n<!-- Written from the code by `make generate`; do not edit this page. -->\n\n{purpose}\n"
    )
}

/// A table with these headings.
fn table<const N: usize>(headings: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&headings.map(ToOwned::to_owned));
    text += &format!("{}|\n", "|---".repeat(N));
    rows.into_iter().for_each(|row| text += &line(&row));
    text
}

/// A value or a name in a cell; nothing if it is empty.
fn code(value: impl Display) -> String {
    let value = value.to_string();
    if value.is_empty() { value } else { format!("`{}`", value.replace('|', "\\|")) }
}

/// A sentence in a cell.
fn prose(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*").replace('[', "\\[")
}
