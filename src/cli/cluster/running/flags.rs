//! The flags of a container: its arguments and its environment.

use clap::{Arg, ArgMatches, Args, Command, builder::Resettable};

use super::pod::Container;

/// Returns the values of a flag.
pub fn given(matches: &ArgMatches, id: &str) -> Vec<String> {
    let values = matches.try_get_raw(id).ok().flatten().into_iter().flatten();
    values.filter_map(|value| value.to_str().map(str::to_owned)).collect()
}

/// Returns the command and the arguments of a container.
pub fn words(container: &Container) -> impl Iterator<Item = &String> {
    container.command.iter().chain(&container.args)
}

/// Parses the arguments of a container with its environment, as the subcommand does.
pub fn parse<F: Args>(container: &Container, subcommand: &'static str) -> Result<ArgMatches, String> {
    let flags = F::augment_args(Command::new(subcommand));
    let arguments: Vec<&String> = words(container).skip_while(|word| *word != subcommand).collect();
    let mut line: Vec<String> = Vec::new();
    for argument in flags.get_arguments() {
        line.extend(by_environment(argument, container, &arguments));
    }
    line.extend(arguments.into_iter().skip(1).cloned());
    // The environment of this process does not apply.
    let flags = flags.mut_args(|argument| argument.env(Resettable::Reset)).no_binary_name(true);
    flags.try_get_matches_from(line).map_err(|error| first_line(&error))
}

/// Returns a flag of the container's environment, unless the arguments set it.
fn by_environment(argument: &Arg, container: &Container, arguments: &[&String]) -> Option<String> {
    let (variable, long) = (argument.get_env()?.to_str()?, format!("--{}", argument.get_long()?));
    let is_given = |given: &str| given == long || given.starts_with(&format!("{long}="));
    if arguments.iter().any(|given| is_given(given)) {
        return None;
    }
    let value = container.env.iter().find(|one| one.name == variable)?.value.as_ref()?;
    if argument.get_action().takes_values() {
        return Some(format!("{long}={value}"));
    }
    ["true", "1", "yes", "on"].contains(&&*value.to_lowercase()).then_some(long)
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
