//! Flags and environment variables, by subcommand.

use clap::{Arg, Command, CommandFactory};
use otel_webhook::Cli;

use super::{beginning, code, prose, table};

/// The command line, with what clap adds to it.
pub fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

pub fn page() -> String {
    let purpose = "Every subcommand of `otel-webhook` with its flags, environment variables and defaults. A flag on \
                   the command line overrides its environment variable. Per-invocation options, such as \
                   `-f`, have none.";
    let mut text = beginning("Flags and environment variables", purpose);
    let command = command();
    let shown = command.get_subcommands().filter(|command| command.get_name() != "help");
    for command in shown {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        text += &format!("\n## {}\n\n{}.\n\n", command.get_name(), prose(&about));
        text += &table(["flag", "environment variable", "default", "meaning"], rows(command));
    }
    text
}

fn rows(command: &Command) -> impl Iterator<Item = [String; 4]> {
    let own = |argument: &&Arg| !["help", "version"].contains(&argument.get_id().as_str());
    command.get_arguments().filter(own).map(|argument| {
        let variable = argument.get_env().and_then(|name| name.to_str()).unwrap_or_default();
        let is_switch = !argument.get_action().takes_values();
        let defaults = argument.get_default_values().iter().filter_map(|value| value.to_str());
        let default = if is_switch { String::new() } else { defaults.collect::<Vec<_>>().join(",") };
        [code(name(argument)), code(variable), code(default), meaning(argument)]
    })
}

/// How it is given, such as `-n, --namespace NAMESPACE`.
fn name(argument: &Arg) -> String {
    let values = argument.get_value_names().filter(|_| argument.get_action().takes_values());
    let value = values.map(|names| names.join(" ")).unwrap_or_default();
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let flags: Vec<_> = short.into_iter().chain(long).collect();
    format!("{} {value}", flags.join(", ")).trim().to_owned()
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let possible = argument.get_possible_values();
    let shown = possible.iter().filter(|value| !value.is_hide_set() && argument.get_action().takes_values());
    let values: Vec<_> = shown
        .map(|value| {
            let help = value.get_help().map(|help| format!(" ({})", prose(&help.to_string())));
            format!("`{}`{}", value.get_name(), help.unwrap_or_default())
        })
        .collect();
    let values = if values.is_empty() { String::new() } else { format!(". One of {}", values.join(", ")) };
    format!("{}{values}", prose(&help))
}

#[test]
fn every_flag_of_every_subcommand_is_in_the_reference() {
    let text = page();
    let command = command();
    for argument in command.get_subcommands().flat_map(Command::get_arguments) {
        let Some(long) = argument.get_long().filter(|long| !["help", "version"].contains(long)) else {
            continue;
        };
        assert!(text.contains(&format!("--{long}")), "--{long} is not in the reference");
        assert!(argument.get_help().is_some(), "--{long} has no meaning");
    }
}
