//! The command line: one file for each subcommand.
//!
//! Flags are parsed first, each with an environment variable, and resolved
//! once into typed settings. `main` maps the result to an exit code.

mod certs;
mod check;
mod client;
mod cluster;
mod completions;
mod config;
mod controller;
mod convert;
mod crd;
mod default;
mod demo;
pub mod diff;
mod explain;
mod flags;
mod heard;
mod inject;
mod man;
mod names;
mod output;
mod pace;
mod parts;
mod pause;
mod rbac;
mod serve;
mod status;
mod stream;
mod tls;
mod trace;
mod validate;
mod version;
mod workload;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use flags::InjectionFlags;

use output::Failure;

/// Inject OpenTelemetry auto-instrumentation into annotated Kubernetes pods.
#[derive(Debug, Parser)]
#[command(name = "otel-webhook", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server locally, send it one review, and show the injected pod as a diff
    Demo(demo::DemoFlags),
    /// Run the webhook server
    Serve(Box<serve::ServeFlags>),
    /// Run the controller, which reports pods with missing or outdated agents
    #[command(after_help = controller::EXAMPLES)]
    Controller(Box<controller::ControllerFlags>),
    /// Inject into the pods of YAML or JSON documents, as the webhook does in a cluster
    #[command(after_help = inject::EXAMPLES)]
    Inject(inject::InjectArgs),
    /// Show what would be injected into new pods of a cluster, or of YAML or JSON documents, and why
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::ExplainArgs),
    /// Follow the data of a workload from its annotation to the backend, up to the first step that fails
    #[command(after_help = trace::EXAMPLES)]
    Trace(Box<trace::TraceArgs>),
    /// Print the configuration files that pods would get (spec.declarativeConfig), or migrate Instrumentations to a file
    #[command(after_help = config::EXAMPLES)]
    Config(config::ConfigArgs),
    /// Validate the Instrumentations of YAML or JSON documents, as a cluster with the webhook does
    #[command(after_help = validate::EXAMPLES)]
    Validate(validate::ValidateArgs),
    /// Default the Instrumentations of YAML or JSON documents, as a cluster with the webhook does
    #[command(after_help = default::EXAMPLES)]
    Default(default::DefaultArgs),
    /// Convert the Instrumentations of YAML or JSON documents to another version
    #[command(after_help = convert::EXAMPLES)]
    Convert(convert::ConvertArgs),
    /// Check whether the webhook works in a cluster, and preview what it would change
    #[command(after_help = check::EXAMPLES)]
    Check(Box<check::CheckArgs>),
    /// Show which running pods of a cluster are injected, stale or missed, why, and how to bring them up to date
    #[command(after_help = status::EXAMPLES)]
    Status(Box<status::StatusArgs>),
    /// Pause injection into new pods: of a namespace, of an Instrumentation, or all
    #[command(after_help = pause::PAUSE_EXAMPLES)]
    Pause(pause::PauseArgs),
    /// Resume injection into new pods
    #[command(after_help = pause::RESUME_EXAMPLES)]
    Resume(pause::PauseArgs),
    /// Print how a Collector shows the controller what arrives
    #[command(after_help = heard::EXAMPLES)]
    Heard(heard::HeardArgs),
    /// Print the CustomResourceDefinition (CRD) of Instrumentation
    #[command(after_help = crd::EXAMPLES)]
    Crd(crd::CrdArgs),
    /// Print the service accounts and the RBAC roles that the webhook and the controller need
    #[command(after_help = rbac::EXAMPLES)]
    Rbac(rbac::RbacArgs),
    /// Create a CA and a serving certificate as files
    #[command(after_help = certs::EXAMPLES)]
    Certs(certs::CertsArgs),
    /// Print the version, what it was built from and for, and the default images
    #[command(after_help = version::EXAMPLES)]
    Version(version::VersionArgs),
    /// Print a shell completion script, which also completes names of namespaces and workloads from the cluster
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory
    ManPages(man::ManArgs),
}

/// Runs the program.
pub fn run() -> ExitCode {
    completions::answer();
    let parsed = Cli::from_arg_matches(&command_line().get_matches());
    match dispatch(&parsed.unwrap_or_else(|error| error.exit()).command) {
        Ok(code) => code,
        Err(failure) => {
            // It may have several lines, and names from the input.
            let lines: Vec<_> = failure.to_string().lines().map(otel_webhook_review::one_line).collect();
            eprintln!("otel-webhook: {}", lines.join("\n"));
            ExitCode::from(failure.code)
        }
    }
}

/// Returns the command line. Where the flags of the webhook are not the subject, only `--help` lists them.
pub fn command_line() -> clap::Command {
    let is_of_webhook = |arg: &clap::Arg| {
        let heading = arg.get_help_heading();
        matches!(heading, Some("Injection" | "Images")) && arg.get_id() != "own_flags"
    };
    let hide = |arg: clap::Arg| {
        let is_of_webhook = is_of_webhook(&arg);
        arg.hide_short_help(is_of_webhook)
    };
    Cli::command().mut_subcommands(|one| match one.get_name() {
        "serve" | "controller" => one,
        _ => one.mut_args(hide),
    })
}

fn dispatch(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Demo(flags) => demo::run(flags),
        Command::Serve(flags) => serve::run(flags),
        Command::Controller(flags) => controller::run(flags),
        Command::Inject(args) => inject::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Config(args) => config::run(args),
        Command::Validate(args) => validate::run(args),
        Command::Default(args) => default::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Certs(args) => certs::run(args),
        Command::Rbac(args) => rbac::run(args),
        Command::Check(args) => check::run(args),
        Command::Status(args) => status::run(args),
        Command::Pause(args) => pause::run(args, pause::Action::Pause),
        Command::Resume(args) => pause::run(args, pause::Action::Resume),
        Command::Heard(args) => heard::run(args),
        Command::Version(args) => version::run(args),
        Command::ManPages(args) => man::run(args, command_line()),
        Command::Crd(args) => crd::run(args),
        Command::Completions { shell } => {
            let written = completions::script(*shell).and_then(|script| io::stdout().write_all(&script));
            output::finish(written, ExitCode::SUCCESS)
        }
    }
}

/// Returns the CustomResourceDefinition as `otel-webhook crd` prints it without flags.
pub fn crd_yaml() -> String {
    crd::yaml(&otel_webhook_api::crd::crd())
}
