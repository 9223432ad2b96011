//! `version`: prints the version, what it was built from and for, and the default images.

use std::{fmt::Write, process::ExitCode};

use clap::Args;
use serde_json::{Map, Value, json};

use super::output::{Failure, ReportFlags};
use otel_webhook_api::defaults::LANGUAGES;

/// The commit is not read from Git: a source archive has none, and a file of Git in the build would change the
/// program with the state of the work tree. `make release` sets it, to the commit that it builds.
const COMMIT: Option<&str> = option_env!("OTEL_WEBHOOK_COMMIT");

/// Features of cargo with which the program can be built.
const FEATURES: &[&str] = if cfg!(feature = "fips") { &["fips"] } else { &[] };

/// The library of cryptography.
const CRYPTOGRAPHY: &str = if cfg!(feature = "fips") { "AWS-LC in FIPS mode" } else { "ring" };

/// Flags of `version`.
#[derive(Debug, Args)]
pub struct VersionArgs {
    #[command(flatten)]
    report: ReportFlags,
}

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  The commit from which the program was built:
    otel-webhook version -o json | jq -r .commit

The commit is \"unknown\" if the program was not built by `make release`. Fields are added, and never removed or renamed,
within a major version.";

/// Runs the subcommand.
///
/// # Errors
/// If the output cannot be written.
pub fn run(args: &VersionArgs) -> Result<ExitCode, Failure> {
    let about = about();
    args.report.write(ExitCode::SUCCESS, || text(&about), || [about.clone()])
}

fn about() -> Value {
    let images: Map<_, _> =
        LANGUAGES.iter().map(|language| (language.language.to_owned(), json!(language.image))).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": COMMIT.unwrap_or("unknown"),
        "build": {
            "target": env!("OTEL_WEBHOOK_BUILD_TARGET"),
            "profile": env!("OTEL_WEBHOOK_BUILD_PROFILE"),
            "cryptography": CRYPTOGRAPHY,
            "features": FEATURES,
        },
        "agentImages": images,
    })
}

fn text(about: &Value) -> String {
    let shown = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let build = &about["build"];
    let mut text = format!(
        "otel-webhook {}\ncommit: {}\nbuild: {}, {}, {}\ndefault images:\n",
        shown(&about["version"]),
        shown(&about["commit"]),
        shown(&build["target"]),
        shown(&build["profile"]),
        shown(&build["cryptography"]),
    );
    for (language, image) in about["agentImages"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "  {language}: {}", shown(image));
    }
    text
}
