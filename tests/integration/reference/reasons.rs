//! Codes of reasons, warnings, notes and mistakes: meaning, cause and remedy.

use otel_webhook_inject::{
    mistakes::Fault,
    note::{Code, Level},
    reason::{Reason, Silent},
};
use regex::Regex;

use super::{beginning, code, prose, table};

pub fn page() -> String {
    let purpose = "Every code that says why something was or was not injected. Codes are stable, sentences are not. \
                   [Troubleshooting](../operations/troubleshooting.md) says where codes are shown; the states and reasons of \
                   running pods are in [day two](../operations/status.md#reasons), the findings of `check` in the \
                   [runbook](../operations/runbook.md#findings-of-check).";
    let mut text = beginning("Reason codes", purpose);
    text += "\n## Reasons\n\nOne for each language and container of a pod that opted in. Words in braces in a sentence \
             stand for names of the pod.\n\n";
    let rows = Reason::ALL.iter().map(|one| [code(one.code), linked(one.meaning), linked(one.remedy)]);
    text += &table(["code", "meaning", "what to do"], rows);
    text += "\n## Sentences\n\nWhat `explain`, warnings and `otel-webhook/message` say for each code.\n\n";
    text += &table(["code", "sentence"], Reason::ALL.iter().map(|one| [code(one.code), prose(one.sentence)]));
    text += "\n## Causes of missing data\n\nWhy no data of an injected pod [arrives](../operations/heard.md): the first that \
             applies is the most likely. `otel-webhook trace`, the status page and Events have them.\n\n";
    let rows = Silent::ALL.iter().map(|one| [code(one.code), linked(one.meaning), linked(one.remedy)]);
    text += &table(["code", "meaning", "what to do"], rows);
    let noted = |level| {
        let of_level = Code::ALL.iter().filter(move |one| one.level() == level);
        of_level.map(|one| [code(one.name()), linked(one.texts()[0]), linked(one.texts()[1])]).collect()
    };
    let mistakes = Fault::ALL.iter().map(|one| {
        let [meaning, remedy] = one.texts().map(linked);
        [code(one.code()), meaning, remedy]
    });
    let lists: [(_, _, Vec<_>); 3] = [
        (
            "Warnings",
            "The container was injected, and the result is probably not what was meant.",
            noted(Level::Warning),
        ),
        ("Notes", "The container was injected, and this was decided on the way.", noted(Level::Note)),
        ("Mistakes", "An annotation or a label has no effect.", mistakes.collect()),
    ];
    for (heading, about, rows) in lists {
        text += &format!("\n## {heading}\n\n{about}\n\n");
        text += &table(["code", "meaning", "what to do"], rows);
    }
    text
}

/// A text of the program, with links to the pages that it names.
fn linked(text: &str) -> String {
    let page = Regex::new(r"docs/((?:[a-z]+/)?([a-z-]+))\.md(#[a-z-]+)?").expect("an expression");
    page.replace_all(&prose(text), "[$2](../$1.md$3)").into_owned()
}
