//! `convert`: converts the Instrumentations of a stream of documents to another version.

use std::{io::Write, process::ExitCode};

use clap::Args;

use super::{
    output::{Failure, Output, finish},
    stream::FileFlags,
    workload::{self, is_instrumentation},
};
use otel_webhook_api::{Version, convert};
use otel_webhook_store::manifest::Document;

/// Flags of `convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    #[command(flatten)]
    files: FileFlags,

    /// Version to convert to: v1alpha1 or v1beta1
    #[arg(long, value_name = "VERSION", help_heading = "Output")]
    to: Version,
}

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Convert an Instrumentation to v1beta1:
    otel-webhook convert -f instrumentation.yaml --to v1beta1

What a version has no field for is kept in annotations, and is back after the conversion to the other version. The order of
documents is kept, and other kinds are not changed.
Exit status: 0; 2 if the input cannot be read, a document has no apiVersion or kind, or an object cannot be converted.";

/// Runs the subcommand.
///
/// # Errors
/// If the input cannot be read, an object cannot be converted, or the output cannot be written.
pub fn run(args: &ConvertArgs) -> Result<ExitCode, Failure> {
    let streams = args.files.read()?;
    let mut documents = streams.documents()?;
    let changed = documents.iter_mut().map(|document| convert_all(document, args.to));
    let changed = changed.collect::<Result<Vec<_>, _>>()?;
    let mut output = Output::standard();
    let mut both = documents.iter().zip(changed);
    let written = both.try_for_each(|(document, is_changed)| output.yaml(document, is_changed));
    finish(written.and_then(|()| output.out.flush()), ExitCode::SUCCESS)
}

/// Converts the Instrumentations of a document. Returns whether any changed.
fn convert_all(document: &mut Document<'_>, to: Version) -> Result<bool, Failure> {
    let (mut is_changed, mut failure) = (false, None);
    workload::each_object(&mut document.value, &mut |object, object_type| {
        if !is_instrumentation(object_type) || object_type.api_version == to.api_version() {
            return;
        }
        // Items of a typed list may have no type.
        object["apiVersion"] = object_type.api_version.clone().into();
        object["kind"] = object_type.kind.clone().into();
        match convert(object, to) {
            Ok(converted) => {
                *object = converted;
                is_changed = true;
            }
            Err(problem) => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                failure = Some(format!("Instrumentation {name}: {problem}"));
            }
        }
    });
    if is_changed && document.value["kind"] == "InstrumentationList" {
        document.value["apiVersion"] = to.api_version().into();
    }
    failure.map_or(Ok(is_changed), |problem| Err(Failure::unreadable(problem)))
}
