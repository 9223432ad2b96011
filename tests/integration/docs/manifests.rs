//! Manifests and values in YAML blocks.

use serde_json::Value;

use super::{
    markdown::{Block, pages},
    values,
};
use crate::cli;

#[test]
fn every_manifest_is_valid() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in pages() {
        for block in page.blocks.iter().filter(|block| ["yaml", "yml"].contains(&&*block.language)) {
            if block.not_tried.is_none() {
                count += 1;
                wrong.extend(problem(block).map(|problem| format!("{}: {problem}", block.place)));
            }
        }
    }
    assert!(count > 5, "only {count} manifests were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn problem(block: &Block) -> Option<String> {
    // An ellipsis stands for what the page leaves out.
    let text = block.text.replace("…", "left-out");
    let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&text);
    let documents = match documents {
        Ok(documents) => documents,
        Err(error) => return Some(error.to_string()),
    };
    let mut found = documents.iter().filter_map(|document| match kind(document) {
        // The program validates Instrumentations, and finds annotations that nothing reads.
        Kind::Manifest => not_valid(document),
        Kind::Values => values::problem_of(document),
        Kind::Part => None,
    });
    found.next()
}

/// What a document is.
enum Kind {
    /// An object of Kubernetes.
    Manifest,
    /// Values of the chart.
    Values,
    /// A part of an object, of which the page shows no more.
    Part,
}

fn kind(document: &Value) -> Kind {
    let keys: Vec<_> = document.as_object().into_iter().flat_map(|object| object.keys()).collect();
    if document["kind"].is_string() {
        Kind::Manifest
    } else if !keys.is_empty() && keys.iter().all(|key| values::begins(key)) {
        Kind::Values
    } else {
        Kind::Part
    }
}

fn not_valid(document: &Value) -> Option<String> {
    let run = cli::run(&["validate", "-f", "-"], &document.to_string());
    let is_wrong =
        run.code != 0 || run.out.contains("has no effect") || run.out.contains("unknown annotation");
    is_wrong.then(|| format!("{}{}", run.out, run.err))
}
