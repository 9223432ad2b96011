//! `inject`: a stream of documents with its pods injected as a cluster would.

use std::{
    io::{self, BufWriter, Write},
    process::ExitCode,
};

use clap::{Args, ValueEnum};

use super::{
    Failure, InjectionFlags, diff,
    stream::{Review, StreamFlags, World, one_line},
};
use crate::{
    inject::Finding,
    manifest::{self, Document, Style, Syntax},
};

/// What `inject` is told.
#[derive(Debug, Args)]
pub struct InjectArgs {
    #[command(flatten)]
    input: StreamFlags,

    /// "yaml": the stream as it came but for what was injected; "json": one document a line;
    /// "diff": what was changed
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
  Inject a Deployment by the Instrumentation in the same file:
    otel-webhook inject -f app.yaml
  See what would change, with the Instrumentations of a directory:
    otel-webhook inject -f app.yaml --source instrumentations/ -o diff
  Between other tools:
    helm template shop ./chart | otel-webhook inject -f - -n shop --source instrumentations/ | kubectl apply -f -

Documents come out in their order; what is not injected is passed on as it came. Reasons go to standard error.
Exit code: 0; 2 when the input cannot be read or a document has no apiVersion or kind.";

/// Runs the subcommand.
///
/// # Errors
/// When the input cannot be read, or the output not be written.
pub fn run(args: &InjectArgs) -> Result<ExitCode, Failure> {
    let streams = args.input.read()?;
    let mut documents = Vec::new();
    for stream in &streams {
        documents.extend(stream.documents()?);
    }
    let world = World::new(&args.input, &args.injection, &documents)?;
    let mut output = Output::new(args.output, BufWriter::new(io::stdout().lock()));
    let written = documents.into_iter().try_for_each(|mut document| {
        let before = (args.output == Format::Diff).then(|| document.value.clone());
        let reviews = world.inject(&mut document);
        reviews.iter().for_each(report);
        output.write(&document, before.as_ref(), &reviews)
    });
    match written.and_then(|()| output.out.flush()) {
        // Whoever reads the output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::failed(format!("standard output: {error}"))),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// Says on standard error what came of a workload.
fn report(review: &Review) {
    let title = review.title();
    match &review.outcome {
        Err(problem) => say(&format!("{title}: the pod cannot be read and stays as it is: {problem}")),
        Ok(outcome) => {
            for finding in &outcome.findings {
                say(&format!("{title}: {}", sentence(finding)));
                let subject = subject(finding);
                finding.notes.iter().for_each(|note| say(&format!("{title}: {subject}: note: {note}")));
            }
        }
    }
}

fn subject(finding: &Finding) -> String {
    match &finding.container {
        Some(container) => format!("{} in {container}", finding.language),
        None => finding.language.to_owned(),
    }
}

fn sentence(finding: &Finding) -> String {
    let (subject, reason) = (subject(finding), &finding.reason);
    match &finding.instrumentation {
        Some(name) if reason.is_injected() => format!("{subject}: {} by {name}", reason.code()),
        _ => format!("{subject}: {}: {reason}", reason.code()),
    }
}

fn say(text: &str) {
    // Whoever read the reasons has gone; the documents still matter.
    let _ = writeln!(io::stderr(), "{}", one_line(text));
}

/// Where documents go.
struct Output<W> {
    format: Format,
    out: W,
    colour: bool,
    /// What the last document ended with, once there was one.
    last: Option<char>,
}

impl<W: Write> Output<W> {
    fn new(format: Format, out: W) -> Self {
        Self { format, out, colour: diff::colour_wanted(), last: None }
    }

    fn write(
        &mut self,
        document: &Document<'_>,
        before: Option<&serde_json::Value>,
        reviews: &[Review],
    ) -> io::Result<()> {
        let is_changed = reviews.iter().any(Review::is_changed);
        match self.format {
            Format::Yaml => self.yaml(document, is_changed),
            Format::Json => self.json(document, is_changed),
            Format::Diff if is_changed => {
                let titles: Vec<_> =
                    reviews.iter().filter(|review| review.is_changed()).map(Review::title).collect();
                self.diff(document, before.unwrap_or(&document.value), &titles.join(", "))
            }
            Format::Diff => Ok(()),
        }
    }

    fn yaml(&mut self, document: &Document<'_>, is_changed: bool) -> io::Result<()> {
        let is_parted = document.head.lines().any(|line| line.starts_with("---"));
        if let Some(last) = self.last {
            let separator = [if last == '\n' { "" } else { "\n" }, if is_parted { "" } else { "---\n" }];
            self.out.write_all(separator.concat().as_bytes())?;
        }
        let text = if is_changed {
            let text = manifest::write(&document.value, Style::of(document.text));
            // A block of YAML cannot begin in the line of its `---`.
            let needs_break = !document.head.is_empty() && !document.head.ends_with('\n');
            [document.head.trim_end_matches(' '), if needs_break { "\n" } else { "" }, &text].concat()
        } else {
            [document.head, document.text].concat()
        };
        self.last = text.chars().last().or(self.last);
        self.out.write_all(text.as_bytes())
    }

    fn json(&mut self, document: &Document<'_>, is_changed: bool) -> io::Result<()> {
        if document.is_blank() {
            return Ok(());
        }
        let line = match document.syntax {
            Syntax::Json if !is_changed => manifest::compact(document.text),
            _ => document.value.to_string(),
        };
        writeln!(self.out, "{line}")
    }

    fn diff(&mut self, document: &Document<'_>, before: &serde_json::Value, name: &str) -> io::Result<()> {
        // Both sides are written alike, so that nothing but the injection differs.
        let style = Style::of(document.text);
        let [before, after] = [before, &document.value].map(|value| manifest::write(value, style));
        self.out.write_all(diff::unified(&before, &after, name, self.colour).as_bytes())
    }
}
