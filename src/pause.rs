//! `pause` and `resume`: set and remove the annotation that pauses injection.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    process::ExitCode,
};

use clap::{ArgGroup, Args};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};

use super::{
    cluster::{
        facts::{Facts, Release},
        flags::ClusterFlags,
        reader::ClusterReader,
    },
    completions,
    flags::object_name,
    names::label,
    output::{Failure, finish},
};
use otel_webhook_api::annotations::PAUSED_ANNOTATION;
use otel_webhook_inject::{pause::Pause, reason::ObjectName};

/// Flags of `pause` and `resume`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true))]
pub struct PauseArgs {
    /// The pods of this namespace
    #[arg(short, long, value_name = "NAMESPACE", value_parser = label, group = "what",
        add = completions::namespaces())]
    namespace: Option<String>,

    /// The pods that use this Instrumentation
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = object_name, group = "what")]
    instrumentation: Option<ObjectName>,

    /// All pods, by the namespace of the webhook; by the Lease of its controller, if that watches some namespaces only.
    /// Asks before it does so
    #[arg(long, group = "what")]
    all: bool,

    /// Do not ask
    #[arg(short, long, requires = "all")]
    yes: bool,

    /// Name of the webhook configurations, for --all; may be repeated; by default, they are found by the names of their
    /// webhooks
    #[arg(
        long,
        env = "OTEL_WEBHOOK_WEBHOOK_CONFIGURATION",
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Cluster"
    )]
    webhook_configuration: Vec<String>,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Examples of `pause` for `--help`.
pub const PAUSE_EXAMPLES: &str = "\
Examples:
  Start the new pods of a namespace without agents:
    otel-webhook pause --namespace shop
  Start the pods without agents that would use an Instrumentation:
    otel-webhook pause --instrumentation shop/default
  Start all new pods without agents:
    otel-webhook pause --all

Running pods stay as they are. Restarts of workloads wait. The same is possible with kubectl alone: the command is printed.

Exit status: 0; 1 if the object cannot be annotated; 2 if the cluster cannot be reached, or with --all the webhook is
not found or the answer is no.";

/// Examples of `resume` for `--help`.
pub const RESUME_EXAMPLES: &str = "\
Examples:
  Inject into the new pods of a namespace again:
    otel-webhook resume --namespace shop
  Inject into all new pods again, without a question:
    otel-webhook resume --all --yes

What another object pauses stays paused: otel-webhook status lists all.

Exit status: 0; 1 if the object cannot be annotated; 2 if the cluster cannot be reached, or with --all the webhook is
not found or the answer is no.";

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Set the annotation.
    Pause,
    /// Remove it.
    Resume,
}

/// Runs one of the subcommands.
///
/// # Errors
/// If the cluster cannot be reached, or an object cannot be annotated.
pub fn run(args: &PauseArgs, action: Action) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let text = runtime.map_err(Failure::failed)?.block_on(annotate_all(args, action))?;
    finish(io::stdout().write_all(text.as_bytes()), ExitCode::SUCCESS)
}

async fn annotate_all(args: &PauseArgs, action: Action) -> Result<String, Failure> {
    let cluster = ClusterReader::connect(&args.cluster).await?;
    let targets = match (&args.namespace, &args.instrumentation) {
        (Some(namespace), _) => vec![Pause::Namespace(namespace.as_str().into())],
        (None, Some(name)) => vec![Pause::Instrumentation(name.clone())],
        (None, None) => {
            let facts = Facts::gather(&cluster, &args.webhook_configuration).await;
            let targets = of_all(facts.release(), facts.is_controller_scoped(), action)?;
            if !args.yes {
                confirm(action, &cluster.name, &targets)?;
            }
            targets
        }
    };
    let mut text = String::new();
    for target in &targets {
        if annotate(&cluster, target, action).await? {
            text += &done(target, action, |command| args.cluster.complete(command));
        }
    }
    Ok(text)
}

/// Returns the objects to annotate for all pods. A pause needs one; either may have to be resumed.
fn of_all(release: Option<Release>, is_scoped: bool, action: Action) -> Result<Vec<Pause>, Failure> {
    let Some(Release { namespace, lease }) = release else {
        return Err(Failure::unreadable(format!(
            "--all: the namespace of the webhook was not found, since no webhook configuration with a Service is readable \
             by you; annotate it: kubectl annotate namespace NAMESPACE {PAUSED_ANNOTATION}=true"
        )));
    };
    let by_namespace = Pause::Release(namespace.as_str().into());
    let by_lease =
        lease.map(|name| Pause::Lease(ObjectName { namespace: namespace.into(), name: name.into() }));
    Ok(match (by_lease, action) {
        (Some(by_lease), Action::Resume) => vec![by_namespace, by_lease],
        (Some(by_lease), Action::Pause) if is_scoped => vec![by_lease],
        _ => vec![by_namespace],
    })
}

/// Asks on the terminal.
fn confirm(action: Action, cluster: &str, targets: &[Pause]) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::unreadable(
            "--all affects all pods of the cluster, and there is no terminal to ask on; add --yes",
        ));
    }
    let objects: Vec<_> = targets.iter().map(ToString::to_string).collect();
    let what = match action {
        Action::Pause => "Pause injection into all new pods",
        Action::Resume => "Resume injection into all new pods",
    };
    eprint!("{what} of {cluster}, by annotating {}? [y/N] ", objects.join(" and "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(Failure::failed)?;
    let is_yes = ["y", "yes"].iter().any(|yes| answer.trim().eq_ignore_ascii_case(yes));
    if is_yes { Ok(()) } else { Err(Failure::unreadable("nothing was changed")) }
}

/// Sets or removes the annotation. Returns false for a Lease that pauses nothing because it does not exist.
async fn annotate(cluster: &ClusterReader, target: &Pause, action: Action) -> Result<bool, Failure> {
    let (kind, namespace, name) = match target {
        Pause::Release(name) | Pause::Namespace(name) => (ApiResource::erase::<Namespace>(&()), None, name),
        Pause::Lease(ObjectName { namespace, name }) => {
            (ApiResource::erase::<Lease>(&()), Some(namespace), name)
        }
        Pause::Instrumentation(ObjectName { namespace, name }) => {
            (cluster.instrumentations.clone(), Some(namespace), name)
        }
    };
    let client = cluster.client();
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &kind),
        None => Api::all_with(client, &kind),
    };
    let value = match action {
        Action::Pause => json!("true"),
        Action::Resume => Value::Null,
    };
    let patch = json!({"metadata": {"annotations": {PAUSED_ANNOTATION: value}}});
    match api.patch_metadata(name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status))
            if status.code == 404 && matches!((target, action), (Pause::Lease(_), Action::Resume)) =>
        {
            Ok(false)
        }
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Err(Failure::failed(format!("{target} not found")))
        }
        Err(kube::Error::Api(status)) => {
            Err(Failure::failed(format!("{target} cannot be annotated: {}", status.message)))
        }
        Err(error) => Err(Failure::failed(format!("{target} cannot be annotated: {error}"))),
    }
}

/// Says what was done, and how kubectl does the same.
fn done(target: &Pause, action: Action, complete: impl Fn(&str) -> String) -> String {
    let (said, command) = match action {
        Action::Pause => (
            format!("{target}: injection is paused, {} start without agents", target.pods()),
            target.pause_command(),
        ),
        Action::Resume => (format!("{target}: injection is resumed"), target.resume_command()),
    };
    format!("{said}\n  the same by kubectl: {}\n", complete(&command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(lease: Option<&str>) -> Release {
        Release { namespace: "home".to_owned(), lease: lease.map(str::to_owned) }
    }

    #[test]
    fn all_is_paused_by_one_object_and_resumed_by_each() {
        let names = |lease: Option<&str>, is_scoped: bool, action: Action| {
            let targets = of_all(Some(release(lease)), is_scoped, action).expect("a release");
            targets.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(names(Some("leader"), false, Action::Pause), ["Namespace home"]);
        assert_eq!(names(Some("leader"), true, Action::Pause), ["Lease home/leader"]);
        assert_eq!(names(None, true, Action::Pause), ["Namespace home"]);
        assert_eq!(names(Some("leader"), false, Action::Resume), ["Namespace home", "Lease home/leader"]);
        assert_eq!(names(None, false, Action::Resume), ["Namespace home"]);
        let unknown = of_all(None, false, Action::Pause).expect_err("no release").to_string();
        assert!(
            unknown.contains("kubectl annotate namespace NAMESPACE otel-webhook/paused=true"),
            "{unknown}"
        );
    }

    #[test]
    fn the_command_of_kubectl_is_printed() {
        let target = Pause::Namespace("shop".into());
        let complete = |command: &str| format!("{command} --context c");
        assert_eq!(
            done(&target, Action::Pause, complete),
            "Namespace shop: injection is paused, its pods start without agents\n  the same by kubectl: kubectl annotate \
             namespace shop otel-webhook/paused=true --overwrite --context c\n"
        );
        assert_eq!(
            done(&target, Action::Resume, complete),
            "Namespace shop: injection is resumed\n  the same by kubectl: kubectl annotate namespace shop \
             otel-webhook/paused- --context c\n"
        );
    }
}
