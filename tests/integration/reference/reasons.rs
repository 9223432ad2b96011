//! Codes of reasons, warnings, notes and mistakes: meaning, cause and remedy.

mod remedies;
mod told;

use std::collections::BTreeSet;

use otel_webhook_inject::reason::Reason;
use regex::Regex;

use super::{beginning, code, prose, source, table};
use remedies::REMEDIES;
use told::{MISTAKES, NOTES, WARNINGS};

pub fn page() -> String {
    let purpose = "Every code that says why something was or was not injected. Codes are stable, sentences are not. \
                   [Troubleshooting](../troubleshooting.md) says where codes are shown; the states and reasons of \
                   running pods are in [day two](../day-two.md#reasons), the findings of `check` in the \
                   [runbook](../runbook.md#findings-of-check).";
    let mut text = beginning("Reason codes", purpose);
    text += "\n## Reasons\n\nOne for each language and container of a pod that opted in. Words in braces in a sentence \
             stand for names of the pod.\n\n";
    text += &table(["code", "meaning", "cause", "what to do"], rows());
    text += "\n## Sentences\n\nWhat `explain`, warnings and `otel-webhook/message` say for each code.\n\n";
    let sentences = Reason::CODES.iter().zip(Reason::SENTENCES);
    text += &table(["code", "sentence"], sentences.map(|(name, sentence)| [code(name), prose(sentence)]));
    for (heading, about, list) in [
        ("Warnings", "The container was injected, and the result is probably not what was meant.", WARNINGS),
        ("Notes", "The container was injected, and this was decided on the way.", NOTES),
        ("Mistakes", "An annotation or a label has no effect.", MISTAKES),
    ] {
        text += &format!("\n## {heading}\n\n{about}\n\n");
        let rows = list.iter().map(|row| [code(row.0), row.1.to_owned(), row.2.to_owned()]);
        text += &table(["code", "meaning", "what to do"], rows);
    }
    text
}

fn rows() -> impl Iterator<Item = [String; 4]> {
    Reason::CODES.iter().zip(Reason::MEANINGS).map(|(name, meaning)| {
        let known = REMEDIES.iter().find(|row| row.0 == *name);
        let (_, cause, remedy) = known.unwrap_or_else(|| panic!("the reason {name} has no remedy"));
        [code(name), prose(meaning), (*cause).to_owned(), (*remedy).to_owned()]
    })
}

/// The codes that functions `code` of these files return.
pub fn codes(files: &[&str]) -> BTreeSet<String> {
    let code = Regex::new("=> \"([A-Za-z0-9-]+)\"").expect("an expression");
    let functions = Regex::new(r"(?s)fn code\((?:&)?self\).*?\n    }").expect("an expression");
    let mut found = BTreeSet::new();
    for text in files.iter().map(|file| source::text(file)) {
        for function in functions.find_iter(&text) {
            found.extend(code.captures_iter(function.as_str()).map(|one| one[1].to_owned()));
        }
    }
    found
}

fn names(list: &[(&str, &str, &str)]) -> BTreeSet<String> {
    list.iter().map(|row| row.0.to_owned()).collect()
}

#[test]
fn every_reason_has_a_meaning_a_cause_and_a_remedy() {
    let all: BTreeSet<_> = Reason::CODES.iter().map(ToString::to_string).collect();
    assert_eq!(names(REMEDIES), all);
    for [name, meaning, cause, remedy] in rows() {
        assert!(![&meaning, &cause, &remedy].iter().any(|text| text.is_empty()), "{name} lacks one of them");
    }
}

#[test]
fn every_warning_note_and_mistake_is_in_the_reference() {
    let notes =
        ["crates/inject/src/note.rs", "crates/api/src/otlp.rs", "crates/inject/src/attribute_problem.rs"];
    assert_eq!(&names(WARNINGS) | &names(NOTES), codes(&notes));
    assert_eq!(names(MISTAKES), codes(&["crates/inject/src/mistakes/fault.rs"]));
}
