//! The command line: one file a subcommand.
//!
//! Flags are parsed first, each with an environment variable, and resolved
//! once into typed settings; `main` maps the result to an exit code.

mod certs;
mod check;
mod client;
mod default;
mod demo;
pub mod diff;
mod duration;
mod explain;
mod failure;
mod flags;
mod inject;
mod names;
mod objects;
mod output;
mod parts;
mod rbac;
mod serve;
mod stream;
mod tls;
mod validate;
mod workload;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{CommandFactory, Parser, Subcommand};

pub use flags::InjectionFlags;

use default::Format;
use failure::Failure;
use otel_webhook_api::crd;

/// Gives Kubernetes pods their OpenTelemetry agent.
#[derive(Debug, Parser)]
#[command(name = "otel-webhook", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show one review over TLS: the pod as a diff, and the reasons
    Demo(demo::DemoFlags),
    /// Answer the reviews of an API server
    Serve(Box<serve::ServeFlags>),
    /// Inject the pods of YAML or JSON documents as a cluster would
    #[command(after_help = inject::EXAMPLES)]
    Inject(inject::InjectArgs),
    /// Tell what would be injected into the pods of YAML or JSON documents, and why
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::ExplainArgs),
    /// Tell whether a cluster would take the Instrumentations of YAML or JSON documents
    #[command(after_help = validate::EXAMPLES)]
    Validate(validate::ValidateArgs),
    /// Complete the Instrumentations of YAML or JSON documents as a cluster would
    #[command(after_help = default::EXAMPLES)]
    Default(default::DefaultArgs),
    /// Tell whether the webhook works in a cluster, and what it would change there
    #[command(after_help = check::EXAMPLES)]
    Check(Box<check::CheckArgs>),
    /// Print the CustomResourceDefinition of Instrumentation
    Crd {
        /// How it is written
        #[arg(short, long, value_enum, default_value_t = Format::Yaml, help_heading = "Output")]
        output: Format,
    },
    /// Print the roles that the server needs, made from the code that needs them
    #[command(after_help = rbac::EXAMPLES)]
    Rbac(rbac::RbacArgs),
    /// Make an authority and a certificate for one's own setup
    #[command(after_help = certs::EXAMPLES)]
    Certs(certs::CertsArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Runs the program.
pub fn run() -> ExitCode {
    match dispatch(&Cli::parse().command) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("otel-webhook: {failure}");
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Demo(flags) => return demo::run(flags),
        Command::Serve(flags) => return serve::run(flags),
        Command::Inject(args) => return inject::run(args),
        Command::Explain(args) => return explain::run(args),
        Command::Validate(args) => return validate::run(args),
        Command::Default(args) => return default::run(args),
        Command::Certs(args) => return certs::run(args),
        Command::Rbac(args) => return rbac::run(args),
        Command::Check(args) => return check::run(args),
        Command::Crd { output } => {
            let text = match output {
                Format::Yaml => crd_yaml(),
                Format::Json => format!("{}\n", crd::crd()),
            };
            return output::finish(io::stdout().write_all(text.as_bytes()), ExitCode::SUCCESS);
        }
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut Cli::command(), "otel-webhook", &mut io::stdout());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The CustomResourceDefinition as YAML.
pub fn crd_yaml() -> String {
    serde_saphyr::to_string(&crd::crd()).expect("plain JSON is YAML")
}
