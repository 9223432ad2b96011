//! `man-pages`: writes a man page for the program and for each of its subcommands.

use std::{fs, path::PathBuf, process::ExitCode};

use clap::{Args, Command};

use super::output::Failure;

/// Flags of `man-pages`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory for otel-webhook.1 and the pages of subcommands; it is created if missing
    #[arg(value_name = "DIR")]
    out: PathBuf,
}

/// Runs the subcommand.
///
/// # Errors
/// If a file cannot be written.
pub fn run(args: &ManArgs, command: Command) -> Result<ExitCode, Failure> {
    let written = fs::create_dir_all(&args.out).and_then(|()| clap_mangen::generate_to(command, &args.out));
    let failed = |error| Failure::failed(format!("{}: {error}", args.out.display()));
    written.map(|()| ExitCode::SUCCESS).map_err(failed)
}
