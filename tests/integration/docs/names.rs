//! Names in backticks: flags, variables, metrics, annotations, codes, values and fields.

use std::collections::BTreeSet;

use clap::Command;
use otel_webhook_api::{
    crd,
    defaults::{LANGUAGES, NAMESPACE_IMAGE_PREFIX},
};
use otel_webhook_inject::reason::Reason;
use regex::Regex;
use serde_json::Value;

use super::{
    markdown::pages,
    programs::{FOREIGN_FLAGS, HELM_FLAGS, KUBECTL_FLAGS},
    values,
};
use crate::reference::{command_line, metrics, source};

/// Pages about what is to come or was before, or with names of any language.
const LEFT_OUT: [&str; 2] = ["CHANGELOG.md", "docs/SUMMARY.md"];

/// Runs a check on each name in backticks, and panics with those that are wrong.
fn check(what: &str, is_wrong: impl Fn(&str) -> bool) {
    let mut wrong = Vec::new();
    for page in pages().iter().filter(|page| !LEFT_OUT.contains(&&*page.path)) {
        let names = page.names.iter().filter(|name| is_wrong(name));
        wrong.extend(names.map(|name| format!("{}: `{name}`", page.path)));
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "these {what} do not exist:\n{}", wrong.join("\n"));
}

#[test]
fn every_named_flag_exists() {
    let command = command_line::command();
    let flags: BTreeSet<_> = all_arguments(&command).filter_map(|argument| argument.get_long()).collect();
    let named = Regex::new("(?:^|[ (])--([a-z][a-z-]+[a-z])").expect("an expression");
    check("flags", |name| {
        // A command of another program is checked where it stands in a block.
        let first = name.split_whitespace().next().unwrap_or_default();
        let is_ours =
            first.starts_with('-') || first == "otel-webhook" || command.find_subcommand(first).is_some();
        is_ours
            && named.captures_iter(name).any(|found| {
                let long = format!("--{}", &found[1]);
                let is_foreign = HELM_FLAGS.contains(&&*long)
                    || KUBECTL_FLAGS.contains(&&*long)
                    || FOREIGN_FLAGS.iter().any(|(flag, _)| *flag == long);
                !flags.contains(&found[1]) && !is_foreign
            })
    });
}

#[test]
fn every_named_environment_variable_exists() {
    let command = command_line::command();
    let variables: BTreeSet<_> =
        all_arguments(&command).filter_map(|argument| argument.get_env()?.to_str()).collect();
    let of_tests = all_text(&["tests", "benches", "release", "crates/testkit", "fuzz"])
        + &source::text("Makefile")
        + &source::text(".ci/run")
        + &source::text("build.rs");
    let named = Regex::new("OTEL_WEBHOOK_[A-Z_]+[A-Z]").expect("an expression");
    check("environment variables", |name| {
        named.find_iter(name).any(|found| {
            let is_prefix = name.contains(&format!("{}_…", found.as_str()));
            !variables.contains(found.as_str()) && !of_tests.contains(found.as_str()) && !is_prefix
        })
    });
}

#[test]
fn every_named_metric_exists() {
    let metrics = metrics::names();
    let named = Regex::new("\\botel_webhook_[a-z_]+[a-z]").expect("an expression");
    let suffixes = ["", "_total", "_bucket", "_sum", "_count", "_info"];
    let crates =
        ["otel_webhook_api", "otel_webhook_inject", "otel_webhook_review", "otel_webhook_managed_certs"];
    check("metrics", |name| {
        named.find_iter(name).any(|found| {
            let is = |metric: &String| {
                suffixes.iter().any(|suffix| {
                    found.as_str() == format!("{metric}{suffix}")
                        || format!("{}{suffix}", found.as_str()) == *metric
                })
            };
            !metrics.iter().any(is) && !crates.contains(&found.as_str()) && !name.contains('…')
        })
    });
}

#[test]
fn every_named_annotation_exists() {
    let reference = source::text("docs/reference/annotations.md");
    let named = Regex::new("(?:instrumentation\\.opentelemetry\\.io|otel-webhook)/([a-z-]+[a-z])")
        .expect("an expression");
    check("annotations", |name| {
        // Paths of files and images, and objects of the namespace otel-webhook.
        let is_other =
            name.contains("github.com") || name.contains("charts/") || name.contains(".io/otel-webhook");
        let found = |found: regex::Captures<'_>| {
            let rest = &name[found.get(0).expect("the match").end()..];
            let is_known = reference.contains(&format!("`{}`", &found[0]))
                || is_object(&found[1])
                || is_default_image(&found[0])
                || ["-…", "-<"].iter().any(|left_out| rest.starts_with(left_out));
            // The last one is shown as a mistake.
            !is_known && !found[0].ends_with("/inject-jva")
        };
        !is_other && named.captures_iter(name).any(found)
    });
}

/// Whether it is the name of an object in the namespace `otel-webhook`, or of a label of examples.
fn is_object(name: &str) -> bool {
    ["otel-webhook", "injects", "default-auto-instrumentation"].iter().any(|start| name.starts_with(start))
}

/// Whether it is the annotation with the default image of a language that has one.
fn is_default_image(name: &str) -> bool {
    let language = name.strip_prefix(NAMESPACE_IMAGE_PREFIX);
    language.is_some_and(|language| LANGUAGES.iter().any(|known| known.language == language))
}

#[test]
fn every_named_code_exists() {
    let words = Regex::new("[A-Za-z0-9]+").expect("an expression");
    let code = all_text(&["src", "crates", "charts", "tests", "examples", "manifests", "benches"]);
    let known: BTreeSet<_> = words.find_iter(&code).map(|word| word.as_str()).collect();
    let camel = Regex::new("^[A-Z][a-z]+(?:[A-Z][a-z0-9]+)+$").expect("an expression");
    assert!(Reason::CODES.iter().all(|code| known.contains(code)));
    check("codes and kinds", |name| camel.is_match(name) && !known.contains(name));
}

#[test]
fn every_named_value_of_the_chart_exists() {
    let path = Regex::new("^[a-zA-Z]+(?:\\.[a-zA-Z0-9]+)+(?:=.*)?$").expect("an expression");
    // Resource attributes, and values of the operator's chart.
    let others =
        ["service.name", "service.namespace", "service.version", "service.instance.id", "crds.create"];
    check("values of the chart", |name| {
        let name = name.split('=').next().unwrap_or_default();
        let parts: Vec<_> = name.split('.').collect();
        let is_file = ["md", "yaml", "rs", "json", "crt", "key", "py", "js", "log"]
            .contains(parts.last().unwrap_or(&""));
        let is_other = is_file || others.contains(&name) || name == "crds.annotations";
        path.is_match(name) && values::begins(parts[0]) && !is_other && !values::exists(&parts)
    });
}

#[test]
fn every_named_field_of_instrumentations_exists() {
    let crd = crd::crd();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let path = Regex::new(r"^spec(?:\.[a-zA-Z0-9_]+)+").expect("an expression");
    check("fields of Instrumentations", |name| {
        let Some(found) = path.find(name) else { return false };
        let parts: Vec<_> = found.as_str().split('.').skip(1).collect();
        // Fields of pods, workloads and others begin otherwise.
        spec["properties"].get(parts[0]).is_some() && !parts_exist(spec, &parts)
    });
}

fn parts_exist(schema: &Value, parts: &[&str]) -> bool {
    let Some((first, rest)) = parts.split_first() else { return true };
    let below = if schema["items"].is_object() { &schema["items"] } else { schema };
    match below["properties"].get(*first) {
        Some(next) => parts_exist(next, rest),
        // A map, or a part of an object of Kubernetes.
        None => below["properties"].is_null() || below["additionalProperties"].is_object(),
    }
}

fn all_arguments(command: &Command) -> impl Iterator<Item = &clap::Arg> {
    command.get_subcommands().flat_map(Command::get_arguments).chain(command.get_arguments())
}

/// The text of all files below these folders that are code.
fn all_text(folders: &[&str]) -> String {
    let endings = ["rs", "yaml", "tpl", "json", "toml", "txt", "go", ""];
    let mut text = String::new();
    for folder in folders {
        collect(&source::repository(folder), &endings, &mut text);
    }
    text
}

fn collect(folder: &std::path::Path, endings: &[&str], text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_dir() {
            collect(&path, endings, text);
        } else if endings.contains(&ending) {
            // Not everything is text.
            *text += &String::from_utf8_lossy(&std::fs::read(&path).expect("a file"));
            text.push('\n');
        }
    }
}
