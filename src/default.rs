//! `default`: defaults the Instrumentations of a stream of documents.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::{
    flags::ImageFlags,
    output::{Failure, Output, finish},
    stream::FileFlags,
    workload::{self, is_instrumentation},
};
use otel_webhook_api as api;
use otel_webhook_api::{
    defaults::DefaultImages,
    validation::{self, Verdict},
};
use otel_webhook_review::one_line;
use otel_webhook_store::manifest::Document;

/// Flags of `default`.
#[derive(Debug, Args)]
pub struct DefaultArgs {
    #[command(flatten)]
    files: FileFlags,

    /// "yaml": the input with only the defaults added; "json": one document per line
    #[arg(short, long, value_enum, default_value_t = Format::Yaml, help_heading = "Output")]
    output: Format,

    #[command(flatten)]
    images: ImageFlags,
}

/// Output formats of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A stream of YAML documents.
    Yaml,
    /// One JSON document per line.
    Json,
}

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Show the Instrumentation that a cluster stores:
    otel-webhook default -f instrumentation.yaml
  Use the images of another registry:
    otel-webhook default -f instrumentation.yaml --image-registry registry.example.com/mirror -o json

The order of documents is kept, and other kinds are not changed. Standard error lists default images that are
replaced or kept.
Exit status: 0; 2 if the input cannot be read or a document has no apiVersion or kind.";

/// Runs the subcommand.
///
/// # Errors
/// If the input cannot be read, or the output cannot be written.
pub fn run(args: &DefaultArgs) -> Result<ExitCode, Failure> {
    let streams = args.files.read()?;
    let mut documents = streams.documents()?;
    let images = args.images.images();
    let mut output = Output::standard();
    let mut write = || {
        for document in &mut documents {
            let is_changed = default_all(document, &images);
            match args.output {
                Format::Yaml => output.yaml(document, is_changed)?,
                Format::Json => output.json(document, is_changed)?,
            }
        }
        output.out.flush()
    };
    finish(write(), ExitCode::SUCCESS)
}

/// Lists on standard error which stored default images are replaced, and which are kept.
fn report(object: &Value, images: &DefaultImages) {
    let mut verdict = Verdict::default();
    validation::check_images(&mut verdict, object, images);
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let title = match (text("namespace"), text("name")) {
        (namespace, name) if namespace.is_empty() => format!("Instrumentation {name}"),
        (namespace, name) => format!("Instrumentation {namespace}/{name}"),
    };
    for message in verdict.warnings.iter().chain(&verdict.notes) {
        // Even if standard error is closed, the documents are written.
        let _ = writeln!(io::stderr(), "{}", one_line(format!("{title}: {message}")));
    }
}

/// Defaults the Instrumentations of a document. Returns whether any changed.
fn default_all(document: &mut Document<'_>, images: &DefaultImages) -> bool {
    let mut is_changed = false;
    workload::each_object(&mut document.value, &mut |object, object_type| {
        if is_instrumentation(object_type) {
            report(object, images);
            let patch = api::defaulting(object, images);
            json_patch::patch(object, &patch).expect("the operations are made for this object");
            is_changed |= !patch.is_empty();
        }
    });
    is_changed
}
