//! Manifests and values of the chart, in YAML blocks and in commands.

use std::{fs, sync::LazyLock};

use serde_json::Value;

use super::markdown::{pages, root};
use crate::{
    cli,
    reference::source::{self, files},
};

#[test]
fn every_manifest_is_valid() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in pages() {
        for block in page.blocks.iter().filter(|block| ["yaml", "yml"].contains(&&*block.language)) {
            if block.not_tried.is_none() {
                count += 1;
                wrong.extend(problem(&block.text).map(|problem| format!("{}: {problem}", block.place)));
            }
        }
    }
    assert!(count > 5, "only {count} manifests were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_is_valid_and_names_the_version_of_its_images() {
    let files = files(&root().join("examples"), "yaml");
    assert!(files.len() > 4, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        assert_eq!(problem(&text), None, "{}", file.display());
        let images = text
            .lines()
            .filter_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix("image: "));
        for image in images {
            let tag = image.rsplit_once(':').map(|(_, tag)| tag);
            assert!(tag.is_some_and(|tag| tag != "latest"), "{}: {image}", file.display());
        }
    }
}

/// What the first guide shows is what its command applies.
#[test]
fn the_instrumentation_of_the_first_guide_is_that_of_the_examples() {
    let pages = pages();
    let guide = pages.iter().find(|page| page.path == "docs/guides/first-service.md").expect("the guide");
    let shown = guide.blocks.iter().find(|block| block.language == "yaml").expect("a manifest");
    assert!(
        source::text("examples/first-service/instrumentation.yaml").ends_with(&shown.text),
        "{}",
        shown.text
    );
}

fn problem(text: &str) -> Option<String> {
    // An ellipsis stands for what the page leaves out.
    let text = text.replace("…", "left-out");
    let documents: Result<Vec<Value>, _> = serde_saphyr::from_multiple(&text);
    let documents = match documents {
        Ok(documents) => documents,
        Err(error) => return Some(error.to_string()),
    };
    let mut found = documents.iter().filter_map(|document| match kind(document) {
        // The program validates Instrumentations, and finds annotations that nothing reads.
        Kind::Manifest => not_valid(document),
        Kind::Values => problem_of(document),
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
    } else if !keys.is_empty() && keys.iter().all(|key| SCHEMA["properties"].get(key).is_some()) {
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

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(&source::text("charts/otel-webhook/values.schema.json")).expect("JSON")
});

/// What is wrong with the values that a command of helm sets for our chart.
pub fn helm_problem(arguments: &[String]) -> Option<String> {
    if !arguments
        .iter()
        .any(|word| word.ends_with("otel-webhook/otel-webhook") || word == "charts/otel-webhook")
    {
        return None;
    }
    let mut set = arguments.windows(2).filter(|pair| pair[0].starts_with("--set")).map(|pair| &pair[1]);
    set.find_map(|assignment| {
        let path = assignment.split_once('=').map_or(&**assignment, |(path, _)| path);
        // A dot in a key is written with a backslash.
        let path: Vec<_> = path.replace("\\.", "\0").split('.').map(ToOwned::to_owned).collect();
        let path: Vec<_> = path.iter().map(|part| part.split('[').next().unwrap_or_default()).collect();
        (!exists(&path)).then(|| format!("the chart has no value {}", path.join(".")))
    })
}

/// Whether the chart has a value of this path.
fn exists(path: &[&str]) -> bool {
    let mut now = resolved(&SCHEMA);
    for part in path {
        if let Some(next) = now["properties"].get(*part) {
            now = resolved(next);
            continue;
        }
        // An object of Kubernetes, or with keys of any name.
        return now["additionalProperties"] != Value::Bool(false)
            && now["properties"].get(*part).is_none()
            && now != &*SCHEMA;
    }
    true
}

/// What a reference leads to.
fn resolved(schema: &'static Value) -> &'static Value {
    let Some(link) = schema["$ref"].as_str() else { return schema };
    let found = link.strip_prefix('#').and_then(|pointer| SCHEMA.pointer(pointer));
    found.unwrap_or_else(|| panic!("{link} leads nowhere"))
}

/// What is wrong with a file of values.
fn problem_of(values: &Value) -> Option<String> {
    let mut paths = Vec::new();
    collect(values, &mut Vec::new(), &mut paths);
    let wrong = paths.into_iter().find(|path| !exists(&path.iter().map(String::as_str).collect::<Vec<_>>()));
    wrong.map(|path| format!("the chart has no value {}", path.join(".")))
}

fn collect(values: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    for (key, value) in values.as_object().into_iter().flatten() {
        path.push(key.clone());
        found.push(path.clone());
        collect(value, path, found);
        path.pop();
    }
}
