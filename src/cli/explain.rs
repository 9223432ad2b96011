//! `explain`: shows what would be injected into the pods of a stream, and why.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::{
    failure::Failure,
    flags::InjectionFlags,
    output::{self, ReportFlags},
    stream::{Review, StreamFlags, World},
};
use otel_webhook_api::ANNOTATION_PREFIX;
use otel_webhook_inject::{Finding, Note, language::LANGUAGES};
use otel_webhook_review::one_line;

/// Flags of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    input: StreamFlags,

    #[command(flatten)]
    report: ReportFlags,

    #[command(flatten)]
    injection: InjectionFlags,
}

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Show why a Deployment is not injected:
    otel-webhook explain -f app.yaml --source instrumentations/
  As JSON:
    otel-webhook explain -f app.yaml -o json
  For the pods of a namespace in a cluster:
    kubectl get pod,replicaset,instrumentation -n shop -o yaml | otel-webhook explain -f - -n shop

Exit status: 0; 2 if the input cannot be read or a document has no apiVersion or kind.";

/// The column headers.
const COLUMNS: [&str; 5] = ["CONTAINER", "LANGUAGE", "OUTCOME", "INSTRUMENTATION", "REASON"];

/// Runs the subcommand.
///
/// # Errors
/// If the input cannot be read, or the output cannot be written.
pub fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let streams = args.input.files.read()?;
    let mut documents = streams.documents()?;
    let world = World::new(&args.input, &args.injection, &documents)?;
    let reviews: Vec<Review> = documents.iter_mut().flat_map(|document| world.inject(document)).collect();
    args.report.write(
        ExitCode::SUCCESS,
        || table_of_all(&reviews, &args.injection.languages.names()),
        || reviews.iter().map(object),
    )
}

fn table_of_all(reviews: &[Review], languages: &str) -> String {
    if reviews.is_empty() {
        return "The input contains no pods and no pod templates.\n".to_owned();
    }
    let tables: Vec<String> = reviews.iter().map(|review| table(review, languages)).collect();
    tables.join("\n")
}

fn table(review: &Review, languages: &str) -> String {
    let mut lines = vec![format!("{} in namespace {}", review.title(), review.namespace)];
    match &review.outcome {
        Err(problem) => lines.push(format!("  the pod cannot be read: {problem}")),
        Ok(outcome) if outcome.findings.is_empty() => lines.push(format!(
            "  does not opt in; to opt in, set the annotation {ANNOTATION_PREFIX}inject-{}: \"true\" on the pod or \
             its namespace (enabled languages: {languages})",
            LANGUAGES[0].name,
        )),
        Ok(outcome) => {
            let table = output::table(COLUMNS, outcome.findings.iter().map(row));
            lines.extend(table.iter().map(|line| format!("  {line}")));
            lines.extend(outcome.findings.iter().flat_map(notes));
        }
    }
    lines.iter().flat_map(|line| [one_line(line), "\n".to_owned()]).collect()
}

fn notes(finding: &Finding) -> impl Iterator<Item = String> {
    let container = finding.container.as_deref().unwrap_or("-");
    let line =
        move |note: &Note| format!("  {} on {} in {container}: {note}", note.level(), finding.language);
    finding.notes.iter().map(line)
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
    let notes = |warnings: bool| {
        let notes = finding.notes.iter().filter(move |note| note.is_warning() == warnings);
        notes.map(ToString::to_string)
    };
    json!({
        "container": finding.container,
        "language": finding.language,
        "outcome": finding.reason.code(),
        "instrumentation": finding.instrumentation.as_ref().map(ToString::to_string),
        "reason": finding.reason.to_string(),
        "notes": notes(false).collect::<Vec<_>>(),
        "warnings": notes(true).collect::<Vec<_>>(),
    })
}
