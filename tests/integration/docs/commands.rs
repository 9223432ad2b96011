//! Commands of this repository: each is parsed as the program would, in blocks and within the text, unless the page
//! says why not.
//!
//! Other tests run those of the README's chapter on the installation, of docs/guides/migration.md and of
//! docs/operations/verify.md.

use clap::{CommandFactory, error::ErrorKind};
use otel_webhook::Cli;
use regex::Regex;

use super::{
    manifests::helm_problem,
    markdown::{Block, pages},
};
use crate::reference::source;

/// Words of the shell after which a command begins.
const KEYWORDS: [&str; 9] = ["!", "do", "done", "else", "fi", "if", "then", "until", "while"];

/// Pages whose commands are run as they are by another test: page and test.
const RUN_ELSEWHERE: [(&str, &str); 1] = [("docs/operations/verify.md", "release/test-verify")];

#[test]
fn every_command_is_one_that_its_program_takes() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in pages() {
        if RUN_ELSEWHERE.iter().any(|(path, _)| page.path == *path) {
            continue;
        }
        for block in page.blocks.iter().filter(|block| block.not_tried.is_none()) {
            for line in lines(block) {
                count += 1;
                let problems = problems(&line);
                wrong
                    .extend(problems.iter().map(|problem| format!("{}: {line}\n    {problem}", block.place)));
            }
        }
        // Those of the reference are examples of errors, too; the changelog names flags.
        if !page.path.starts_with("docs/reference/") && page.path != "CHANGELOG.md" {
            let inline = page.names.iter().filter_map(|name| Some((name, inline_problem(name)?)));
            wrong.extend(inline.map(|(name, problem)| format!("{}: `{name}`\n    {problem}", page.path)));
        }
    }
    assert!(count > 100, "only {count} commands were found");
    assert!(
        wrong.is_empty(),
        "correct these commands, or say why they are not tried by a line <!-- not tried: REASON --> before the block:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn pages_that_are_run_elsewhere_are_read_there() {
    for (page, test) in RUN_ELSEWHERE {
        assert!(source::text(test).contains(page), "{test} does not read {page}");
    }
}

/// The commands of a block, each with the lines that continue it.
fn lines(block: &Block) -> Vec<String> {
    let joined = block.text.replace("\\\n", " ").replace("|\n", "| ");
    let heredoc = Regex::new(r"(?s)<<'?EOF'?\n.*?\nEOF").expect("an expression");
    let joined = heredoc.replace_all(&joined, "").into_owned();
    match &*block.language {
        "console" => quoted(joined.split("\n$ ").map(|part| part.trim_start_matches("$ "))),
        "sh" | "bash" | "shell" => quoted(joined.lines().filter(|line| !line.trim_start().starts_with('#'))),
        _ => Vec::new(),
    }
}

/// The first line of each part, with the following ones as long as a quotation mark is open.
fn quoted<'t>(parts: impl Iterator<Item = &'t str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for part in parts {
        let mut command = String::new();
        for line in part.lines() {
            command += line;
            if command.matches('\'').count().is_multiple_of(2) {
                break;
            }
            command.push(' ');
        }
        if !command.trim().is_empty() {
            found.push(command.trim().to_owned());
        }
    }
    found
}

/// What is wrong with the commands of a line.
fn problems(line: &str) -> Vec<String> {
    let substitution = Regex::new(r"\$\(([^()]*)\)").expect("an expression");
    let inner = substitution.captures_iter(line).map(|found| found[1].to_owned());
    let outer = substitution.replace_all(line, "SUBSTITUTED").into_owned();
    inner.chain([outer]).flat_map(|line| problems_of_parts(&line)).collect()
}

fn problems_of_parts(line: &str) -> Vec<String> {
    let Some(words) = shlex::split(&line.replace("; ", " ; ")) else {
        return vec!["a quotation mark is not closed".to_owned()];
    };
    let parts = words.split(|word| ["|", "||", "&&", ";", "&"].contains(&word.as_str()));
    parts.filter_map(|part| problem(&plain(part))).collect()
}

/// A command without keywords, assignments and redirections.
fn plain(words: &[String]) -> Vec<String> {
    let is_before = |word: &&String| {
        let assigns = word
            .split_once('=')
            .is_some_and(|(name, _)| name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()));
        assigns || KEYWORDS.contains(&word.as_str())
    };
    let command: Vec<_> = words.iter().skip_while(is_before).cloned().collect();
    let redirection = command.iter().position(|word| word.starts_with(['>', '<']) || word.starts_with("2>"));
    command[..redirection.unwrap_or(command.len())].to_vec()
}

fn problem(words: &[String]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    match program.rsplit('/').next().unwrap_or_default() {
        "otel-webhook" => of_ours(arguments),
        "cargo" => of_cargo(arguments),
        "helm" => helm_problem(arguments),
        "make" => of_make(arguments),
        _ => None,
    }
}

/// Whether our own command line takes it.
fn of_ours(arguments: &[String]) -> Option<String> {
    rejection(arguments.iter().map(String::as_str)).map(|error| error.to_string())
}

/// What is wrong with a command within the text, which is one of the programs of blocks with arguments. A word in
/// capitals may stand for a value.
fn inline_problem(name: &str) -> Option<String> {
    // Names of images and of metrics begin so, too.
    let is_command =
        ["otel-webhook ", "cargo run ", "helm ", "make "].iter().any(|start| name.starts_with(start));
    let has_placeholder =
        name.split([' ', '=', '/']).any(|word| word.bytes().all(|byte| byte.is_ascii_uppercase()));
    if !is_command || name.contains('…') {
        return None;
    }
    let arguments: Vec<_> = name.split(' ').skip(1).take_while(|word| *word != "|").collect();
    match name.strip_prefix("otel-webhook ").and_then(|_| rejection(arguments.into_iter())) {
        Some(error) => {
            let is_value = matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation);
            (!is_value || !has_placeholder).then(|| error.to_string())
        }
        None => problems(name).into_iter().next().filter(|_| !has_placeholder),
    }
}

fn rejection<'a>(arguments: impl Iterator<Item = &'a str>) -> Option<clap::Error> {
    let error = Cli::command().try_get_matches_from(["otel-webhook"].into_iter().chain(arguments)).err()?;
    (!matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)).then_some(error)
}

fn of_cargo(arguments: &[String]) -> Option<String> {
    let (command, rest) = arguments.split_first()?;
    let own = rest.iter().position(|word| word == "--").filter(|_| command == "run")?;
    of_ours(&rest[own + 1..])
}

fn of_make(arguments: &[String]) -> Option<String> {
    let makefile = source::text("Makefile");
    let targets = arguments.iter().filter(|word| !word.contains('='));
    let unknown = targets.into_iter().find(|target| !makefile.contains(&format!("\n{target}:")));
    unknown.map(|target| format!("the Makefile has no target {target}"))
}

#[test]
fn a_wrong_command_within_the_text_is_found() {
    for wrong in ["otel-webhook validate", "otel-webhook rbac --tls-managed a", "make no-such-target"] {
        assert!(inline_problem(wrong).is_some(), "{wrong}");
    }
    for right in ["otel-webhook validate -f FILE", "otel-webhook check", "helm uninstall", "otel-webhook"] {
        assert_eq!(inline_problem(right), None, "{right}");
    }
}

#[test]
fn a_wrong_command_is_found() {
    for wrong in [
        "otel-webhook explian -f pod.yaml",
        "otel-webhook explain --no-such-flag",
        "cargo run -- demo --no-such-flag",
        "kubectl get pods | otel-webhook explian -f -",
        "helm install otel-webhook charts/otel-webhook --set injection.langauges=java",
        "make no-such-target",
        "until otel-webhook status --strickt; do sleep 10; done",
    ] {
        assert!(!problems(wrong).is_empty(), "{wrong}");
    }
    let right = "leader=$(kubectl get lease a -o jsonpath='{.spec}') && otel-webhook status > file";
    assert_eq!(problems(right), Vec::<String>::new());
}
