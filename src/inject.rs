//! `inject`: injects into the pods of a stream of documents.

use std::{
    io::{self, BufWriter, StdoutLock, Write},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::{
    diff,
    flags::InjectionFlags,
    output::{Failure, Output, finish},
    stream::{Inputs, Review, StreamFlags},
};
use otel_webhook_inject::Finding;
use otel_webhook_review::one_line;
use otel_webhook_store::manifest::{self, Document, Style};

/// Flags of `inject`.
#[derive(Debug, Args)]
pub struct InjectArgs {
    #[command(flatten)]
    input: StreamFlags,

    /// "yaml": the input with only injected pods changed; "json": one document per line; "diff": a unified diff
    /// of the changes
    #[arg(short, long, value_enum, default_value_t = Format::Yaml, help_heading = "Output")]
    output: Format,

    #[command(flatten)]
    injection: InjectionFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Yaml,
    Json,
    Diff,
}

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Inject into a Deployment, with the Instrumentation in the same file:
    otel-webhook inject -f app.yaml
  Show the changes as a diff, with the Instrumentations of a directory:
    otel-webhook inject -f app.yaml --source instrumentations/ -o diff
  In a pipeline:
    helm template shop ./chart | otel-webhook inject -f - -n shop --source instrumentations/ | kubectl apply -f -

The order of documents is kept, and documents that are not injected do not change. Reasons go to standard error.
Exit status: 0; 2 if the input cannot be read or a document has no apiVersion or kind.";

/// Runs the subcommand.
///
/// # Errors
/// If the input cannot be read, or the output cannot be written.
pub fn run(args: &InjectArgs) -> Result<ExitCode, Failure> {
    let streams = args.input.files.read()?;
    let documents = streams.documents()?;
    let inputs = Inputs::new(&args.input, &args.injection, &documents)?;
    let mut writer = Writer::new(args.output);
    let written = documents.into_iter().try_for_each(|mut document| {
        let before = (args.output == Format::Diff).then(|| document.value.clone());
        let reviews = inputs.inject(&mut document);
        reviews.iter().for_each(report);
        writer.write(&document, before.as_ref(), &reviews)
    });
    finish(written.and_then(|()| writer.output.out.flush()), ExitCode::SUCCESS)
}

/// Reports the result of a workload on standard error.
pub fn report(review: &Review) {
    let title = review.title();
    match &review.outcome {
        Err(problem) => say(&format!("{title}: not injected, since the pod cannot be read: {problem}")),
        Ok(outcome) => {
            for finding in &outcome.findings {
                say(&format!("{title}: {}", sentence(finding)));
                let subject = finding.subject();
                for note in &finding.notes {
                    say(&format!("{title}: {subject}: {}: {note}", note.level()));
                }
            }
        }
    }
}

fn sentence(finding: &Finding) -> String {
    let (subject, reason) = (finding.subject(), &finding.reason);
    match &finding.instrumentation {
        Some(name) if reason.is_injected() => format!("{subject}: {} by {name}", reason.code()),
        _ => format!("{subject}: {}: {reason}", reason.code()),
    }
}

fn say(text: &str) {
    // Even if standard error is closed, the documents are written.
    let _ = writeln!(io::stderr(), "{}", one_line(text));
}

/// Writes documents, or their diffs.
struct Writer {
    format: Format,
    output: Output<BufWriter<StdoutLock<'static>>>,
    colour: bool,
}

impl Writer {
    fn new(format: Format) -> Self {
        Self { format, output: Output::standard(), colour: diff::colour_wanted() }
    }

    fn write(
        &mut self,
        document: &Document<'_>,
        before: Option<&Value>,
        reviews: &[Review],
    ) -> io::Result<()> {
        let is_changed = reviews.iter().any(Review::is_changed);
        match self.format {
            Format::Yaml => self.output.yaml(document, is_changed),
            Format::Json => self.output.json(document, is_changed),
            Format::Diff if is_changed => {
                let titles: Vec<_> =
                    reviews.iter().filter(|review| review.is_changed()).map(Review::title).collect();
                self.diff(document, before.unwrap_or(&document.value), &titles.join(", "))
            }
            Format::Diff => Ok(()),
        }
    }

    fn diff(&mut self, document: &Document<'_>, before: &Value, name: &str) -> io::Result<()> {
        // Both sides have the same style, so that only the injection differs.
        let style = Style::of(document.text);
        let [before, after] = [before, &document.value].map(|value| manifest::write(value, style));
        self.output.out.write_all(diff::unified(&before, &after, name, self.colour).as_bytes())
    }
}
