//! Completion in shells: of subcommands and flags, and of names from the cluster.
//!
//! The script of a shell runs the program with the words of the command line so far, and the program prints candidates.

use std::{env, ffi::OsStr, io, iter, time::Duration};

use clap::{ArgMatches, FromArgMatches as _};
use clap_complete::{ArgValueCompleter, CompletionCandidate, Shell, env::CompleteEnv, env::Shells};
use k8s_openapi::api::core::v1::Namespace;
use kube::{config::Kubeconfig, core::ApiResource};
use serde_json::Value;
use tokio::time::timeout;

use super::{
    cluster::{
        flags::ClusterFlags,
        object::text,
        reader::{ClusterReader, Part},
    },
    command_line,
    explain::target,
};

/// The environment variable by which a script asks for candidates; its value is the shell.
const VARIABLE: &str = "OTEL_WEBHOOK_COMPLETE";

/// How long a shell waits for names of a cluster.
const PATIENCE: Duration = Duration::from_secs(3);

/// Prints candidates and ends the program, if the script of a shell has run it.
pub fn answer() {
    CompleteEnv::with_factory(command_line).var(VARIABLE).complete();
}

/// Returns the script of a shell.
///
/// # Errors
/// If it cannot be written.
pub fn script(shell: Shell) -> io::Result<Vec<u8>> {
    let shells = Shells::builtins();
    let shell = shells.completer(&shell.to_string()).expect("the same shells");
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "otel-webhook", "otel-webhook", "otel-webhook", &mut script)?;
    Ok(script)
}

/// Completes a workload, as in `deployment/order`: first the type, then names of its namespace.
pub fn workloads() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_str().unwrap_or_default();
        let Some((kind, _)) = current.split_once('/') else {
            return candidates(current, target::types().map(|name| format!("{name}/")));
        };
        let names = target::resource(kind).map(|resource| names(&resource, true)).unwrap_or_default();
        candidates(current, names.into_iter().map(|name| format!("{kind}/{name}")))
    })
}

/// Completes a namespace of the cluster.
pub fn namespaces() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let all = names(&ApiResource::erase::<Namespace>(&()), false);
        candidates(current.to_str().unwrap_or_default(), all.into_iter())
    })
}

/// Completes a context of the kubeconfig.
pub fn contexts() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let all = Kubeconfig::read().map(|config| config.contexts).unwrap_or_default();
        candidates(current.to_str().unwrap_or_default(), all.into_iter().map(|context| context.name))
    })
}

fn candidates(current: &str, all: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    all.filter(|one| one.starts_with(current)).map(CompletionCandidate::new).collect()
}

/// Returns the names of the objects of a kind; none if the cluster does not answer in time, or the user may not list
/// them.
fn names(resource: &ApiResource, is_namespaced: bool) -> Vec<String> {
    let words =
        iter::once("otel-webhook".to_owned()).chain(env::args().skip_while(|word| word != "--").skip(2));
    let matches = command_line().ignore_errors(true).try_get_matches_from(words).ok();
    let Some((_, given)) = matches.as_ref().and_then(ArgMatches::subcommand) else { return Vec::new() };
    let listing = async {
        let cluster = ClusterReader::connect(&ClusterFlags::from_arg_matches(given).ok()?).await.ok()?;
        let namespace = given.try_get_one::<String>("namespace").ok().flatten().unwrap_or(&cluster.namespace);
        let mut names = Vec::new();
        let take = |object: Value| names.push(text(&object["metadata"]["name"]));
        let scope = is_namespaced.then_some(&**namespace);
        cluster.each(resource, scope, Part::Metadata, take).await.ok()?;
        Some(names)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let listed =
        runtime.ok().and_then(|runtime| runtime.block_on(async { timeout(PATIENCE, listing).await.ok()? }));
    listed.unwrap_or_default()
}
