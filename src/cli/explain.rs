//! `explain`: what would be injected into the pods of a stream, and why not more.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{
    Failure, InjectionFlags,
    stream::{Review, StreamFlags, World},
};
use crate::{
    api::ANNOTATION_PREFIX,
    inject::{Finding, Outcome, language::LANGUAGES},
};

/// What `explain` is told.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    input: StreamFlags,

    /// "table": for people; "json": one object a workload and line
    #[arg(short, long, value_enum, default_value_t = Format::Table, help_heading = "Output")]
    output: Format,

    #[command(flatten)]
    injection: InjectionFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Why does this Deployment not get its agent?
    otel-webhook explain -f app.yaml --source instrumentations/
  For a program:
    otel-webhook explain -f app.yaml -o json
  A pod of a cluster, with what the cluster knows:
    kubectl get pod,replicaset,instrumentation -n shop -o yaml | otel-webhook explain -f - -n shop

Exit code: 0; 2 when the input cannot be read or a document has no apiVersion or kind.";

/// The heads of the columns.
const COLUMNS: [&str; 5] = ["CONTAINER", "LANGUAGE", "OUTCOME", "INSTRUMENTATION", "REASON"];

/// Runs the subcommand.
///
/// # Errors
/// When the input cannot be read, or the output not be written.
pub fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let streams = args.input.read()?;
    let mut documents = Vec::new();
    for stream in &streams {
        documents.extend(stream.documents()?);
    }
    let world = World::new(&args.input, &args.injection, &documents)?;
    let reviews: Vec<Review> = documents.iter_mut().flat_map(|document| world.inject(document)).collect();
    let text = match args.output {
        Format::Table => table_of_all(&reviews, &args.injection.languages.names()),
        Format::Json => reviews.iter().map(|review| format!("{}\n", object(review))).collect(),
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        // Whoever reads the output has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("standard output: {error}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn table_of_all(reviews: &[Review], languages: &str) -> String {
    if reviews.is_empty() {
        return "There is no pod and no pod template in the input.\n".to_owned();
    }
    let tables: Vec<String> = reviews.iter().map(|review| table(review, languages)).collect();
    tables.join("\n")
}

fn table(review: &Review, languages: &str) -> String {
    let mut out = format!("{} in namespace {}\n", review.title(), review.namespace);
    match &review.outcome {
        Err(problem) => out.push_str(&format!("  the pod cannot be read: {problem}\n")),
        Ok(outcome) if outcome.findings.is_empty() => out.push_str(&format!(
            "  asks for nothing; the annotation {ANNOTATION_PREFIX}inject-{}: \"true\" on the pod, or on its \
             namespace, would ask (languages that are enabled: {languages})\n",
            LANGUAGES[0].name,
        )),
        Ok(outcome) => rows(&mut out, outcome),
    }
    out
}

fn rows(out: &mut String, outcome: &Outcome) {
    let rows: Vec<[String; 5]> =
        std::iter::once(COLUMNS.map(str::to_owned)).chain(outcome.findings.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        out.push_str(&format!("  {}\n", cells.join("  ").trim_end()));
    }
    for finding in &outcome.findings {
        for note in &finding.notes {
            let container = finding.container.as_deref().unwrap_or("-");
            out.push_str(&format!("  note on {} in {container}: {note}\n", finding.language));
        }
    }
}

fn row(finding: &Finding) -> [String; 5] {
    let dash = || "-".to_owned();
    [
        finding.container.clone().unwrap_or_else(dash),
        finding.language.to_owned(),
        finding.reason.code().to_owned(),
        finding.instrumentation.as_ref().map_or_else(dash, ToString::to_string),
        finding.reason.to_string(),
    ]
}

fn object(review: &Review) -> Value {
    let mut object = json!({
        "kind": review.kind,
        "namespace": review.namespace,
        "name": review.name,
        "findings": [],
    });
    match &review.outcome {
        Ok(outcome) => object["findings"] = outcome.findings.iter().map(finding_object).collect(),
        Err(problem) => object["problem"] = json!(problem),
    }
    object
}

fn finding_object(finding: &Finding) -> Value {
    json!({
        "container": finding.container,
        "language": finding.language,
        "outcome": finding.reason.code(),
        "instrumentation": finding.instrumentation.as_ref().map(ToString::to_string),
        "reason": finding.reason.to_string(),
        "notes": finding.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
