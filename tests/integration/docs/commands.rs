//! Commands: each is parsed as the program that it calls would, unless the page says why not.
//!
//! Other tests run those of the README's chapter on the installation, of docs/migration.md and of docs/verify.md.

use clap::CommandFactory;
use otel_webhook::cli::Cli;
use regex::Regex;

use super::{
    markdown::{Block, pages},
    programs::{CARGO, HELM, HELM_FLAGS, KEYWORDS, KUBECTL, KUBECTL_FLAGS, PLAIN},
    values,
};
use crate::reference::source;

/// Pages whose commands are run as they are by another test: page and test.
const RUN_ELSEWHERE: [(&str, &str); 1] = [("docs/verify.md", "release/test-verify")];

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
        "kubectl" => listed(arguments, KUBECTL, KUBECTL_FLAGS),
        "helm" => listed(arguments, HELM, HELM_FLAGS).or_else(|| values::problem(arguments)),
        "make" => of_make(arguments),
        program if PLAIN.contains(&program) => None,
        program => Some(format!("{program} is not known to this test")),
    }
}

/// Whether our own command line takes it.
fn of_ours(arguments: &[String]) -> Option<String> {
    let words = ["otel-webhook"].into_iter().chain(arguments.iter().map(String::as_str));
    let error = Cli::command().try_get_matches_from(words).err()?;
    let is_shown =
        matches!(error.kind(), clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion);
    (!is_shown).then(|| error.to_string())
}

fn of_cargo(arguments: &[String]) -> Option<String> {
    let (command, rest) = arguments.split_first()?;
    if !CARGO.contains(&command.as_str()) {
        return Some(format!("cargo {command} is not known to this test"));
    }
    let own = rest.iter().position(|word| word == "--").filter(|_| command == "run")?;
    of_ours(&rest[own + 1..])
}

fn of_make(arguments: &[String]) -> Option<String> {
    let makefile = source::text("Makefile");
    let targets = arguments.iter().filter(|word| !word.contains('='));
    let unknown = targets.into_iter().find(|target| !makefile.contains(&format!("\n{target}:")));
    unknown.map(|target| format!("the Makefile has no target {target}"))
}

/// Whether subcommand and flags are in the lists.
fn listed(arguments: &[String], subcommands: &[&str], flags: &[&str]) -> Option<String> {
    // What follows `--` is for another program.
    let own: Vec<_> = arguments.iter().take_while(|word| *word != "--").collect();
    if !own.iter().any(|word| subcommands.contains(&word.as_str())) {
        return Some("no subcommand that this test knows".to_owned());
    }
    let given = own.iter().filter(|word| word.starts_with('-') && word.len() > 1);
    let mut names = given.map(|word| word.split('=').next().unwrap_or_default());
    names.find(|name| !flags.contains(name)).map(|name| format!("the flag {name} is not known to this test"))
}

#[test]
fn a_wrong_command_is_found() {
    for wrong in [
        "otel-webhook explian -f pod.yaml",
        "otel-webhook explain --no-such-flag",
        "cargo run -- demo --no-such-flag",
        "kubectl gte pods",
        "kubectl get pods --everywhere | jq .",
        "helm install otel-webhook charts/otel-webhook --set injection.langauges=java",
        "make no-such-target",
        "until otel-webhook status --strickt; do sleep 10; done",
    ] {
        assert!(!problems(wrong).is_empty(), "{wrong}");
    }
    let right = "leader=$(kubectl get lease a -o jsonpath='{.spec}') && otel-webhook status > file";
    assert_eq!(problems(right), Vec::<String>::new());
}
