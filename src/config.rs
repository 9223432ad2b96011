//! `config`: prints the configuration files that pods would get, and migrates Instrumentations to a file.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{
    flags::InjectionFlags,
    inject,
    output::{Failure, Output, finish},
    stream::{FileFlags, Inputs, StreamFlags},
    workload::{self, is_instrumentation},
};
use otel_webhook_api::{
    Version,
    declarative::{Part, parts},
    in_version, version_of,
};
use otel_webhook_inject::declarative::{self, Migrated};
use otel_webhook_review::one_line;

/// Flags of `config`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: Option<ConfigCommand>,

    #[command(flatten)]
    input: StreamFlags,

    #[command(flatten)]
    injection: InjectionFlags,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print Instrumentations with spec.declarativeConfig in place of exporter, propagators, sampler and OTEL_ variables
    Migrate {
        #[command(flatten)]
        files: FileFlags,
    },
}

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Print the files that the pods of a Deployment would get:
    otel-webhook config -f app.yaml --source instrumentations/
  Configure SDKs by a file instead of variables:
    otel-webhook config migrate -f instrumentation.yaml

References are replaced by the values of the container, as far as these are known; the others stay. Reasons, and what has no
counterpart in a file, go to standard error. Exit status: 0; 2 if the input cannot be read or a document has no apiVersion
or kind.";

/// Runs the subcommand.
///
/// # Errors
/// If the input cannot be read, or the output cannot be written.
pub fn run(args: &ConfigArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        Some(ConfigCommand::Migrate { files }) => migrate(files),
        None => print(args),
    }
}

fn print(args: &ConfigArgs) -> Result<ExitCode, Failure> {
    let streams = args.input.files.read()?;
    let documents = streams.documents()?;
    let inputs = Inputs::new(&args.input, &args.injection, &documents)?;
    let mut text = String::new();
    for mut document in documents {
        inputs.inject(&mut document).iter().for_each(inject::report);
        workload::each(&mut document.value, &mut |workload, _| {
            let title = format!("{}/{}", workload.kind, workload.name);
            files(&title, workload.pod, &mut text);
        });
    }
    finish(io::stdout().lock().write_all(text.as_bytes()), ExitCode::SUCCESS)
}

/// Adds the files of a pod, as each container reads them.
fn files(title: &str, pod: &Value, text: &mut String) {
    let list = |list: &'static str| pod["spec"][list].as_array().into_iter().flatten();
    for (key, file) in pod["metadata"]["annotations"].as_object().into_iter().flatten() {
        let (Some(agent), Some(file)) = (key.strip_prefix(declarative::ANNOTATION), file.as_str()) else {
            continue;
        };
        let volume = declarative::volume_of(agent);
        for container in list("initContainers").chain(list("containers")) {
            let mut mounts = container["volumeMounts"].as_array().into_iter().flatten();
            if mounts.any(|mount| mount["name"] == volume) {
                let name = container["name"].as_str().unwrap_or_default();
                let header = format!("# {title}, container {name}: {agent}");
                text.extend(["---\n", &one_line(&header), "\n", &resolved(file, container), "\n"]);
            }
        }
    }
}

/// A file with the references that are known replaced.
fn resolved(file: &str, container: &Value) -> String {
    let variables = || container["env"].as_array().into_iter().flatten();
    let has_sources = container["envFrom"].as_array().is_some_and(|sources| !sources.is_empty());
    let value = |name: &str, default: Option<&str>| {
        let Some(variable) = variables().rfind(|variable| variable["name"] == name) else {
            return default.filter(|_| !has_sources).map(str::to_owned);
        };
        match (variable["value"].as_str(), variable["valueFrom"].is_null()) {
            (Some(text), true) if !text.is_empty() => Some(text.to_owned()),
            (_, true) => Some(default.unwrap_or_default().to_owned()),
            _ => None,
        }
    };
    let part = |part: Part<'_>| match part {
        Part::Text(text) => text.to_owned(),
        Part::Malformed(text) => format!("${{{text}"),
        Part::Reference { name, default } => match value(name, default) {
            // As in a text in quotes.
            Some(value) => serde_json::json!(value).to_string().trim_matches('"').to_owned(),
            None => {
                default.map_or_else(|| format!("${{{name}}}"), |default| format!("${{{name}:-{default}}}"))
            }
        },
    };
    parts(file).into_iter().map(part).collect()
}

fn migrate(files: &FileFlags) -> Result<ExitCode, Failure> {
    let streams = files.read()?;
    let mut output = Output::standard();
    let written = streams.documents()?.into_iter().try_for_each(|mut document| {
        let mut is_changed = false;
        workload::each_object(&mut document.value, &mut |object, object_type| {
            if !is_instrumentation(object_type) {
                return;
            }
            let version = version_of(object).unwrap_or_default();
            let mut alpha = in_version(object, Version::V1alpha1).into_owned();
            if let Some(Migrated { spec, left }) = declarative::migrated(&alpha["spec"]) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                for left in left {
                    // Even if standard error is closed, the documents are written.
                    let _ = writeln!(io::stderr(), "{}", one_line(format!("Instrumentation {name}: {left}")));
                }
                alpha["spec"] = spec;
                *object = in_version(&alpha, version).into_owned();
                is_changed = true;
            }
        });
        output.yaml(&document, is_changed)
    });
    finish(written.and_then(|()| output.out.flush()), ExitCode::SUCCESS)
}
