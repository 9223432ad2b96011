//! `trace`: follows the data of a workload from the annotation to the backend, up to the first step that fails.

mod steps;

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::{
    cluster::{
        facts::Facts,
        flags::{ClusterFlags, InstalledFlags},
        reader::ClusterReader,
    },
    completions,
    explain::{
        live::{self, Question},
        target,
    },
    output::{Failure, ReportFlags},
};
use otel_webhook_review::one_line;
use steps::{Outcome, Trace};

/// Flags of `trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Workloads or pods of a cluster, as for kubectl: TYPE/NAME ... or TYPE NAME ...; types as for explain
    #[arg(value_name = "TYPE/NAME", required = true, add = completions::workloads())]
    targets: Vec<String>,

    /// Namespace of the workloads; by default that of the context
    #[arg(short, long, value_name = "NAME", help_heading = "Cluster", add = completions::namespaces())]
    namespace: Option<String>,

    #[command(flatten)]
    cluster: ClusterFlags,

    #[command(flatten)]
    report: ReportFlags,

    #[command(flatten)]
    installed: InstalledFlags,
}

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Show where the data of a Deployment stops:
    otel-webhook trace deployment/order -n shop
  Print the code of the first step that fails:
    otel-webhook trace deployment/order -n shop -o json | jq -r '.steps[] | select(.result == \"failed\") | .code'

Each step has passed (✓), failed (✗), or is not known (?), as where you may not read something. Nothing is sent, so that
what only a connection shows is not known. Exit status: 0; 1 if a step has failed; 2 if the cluster cannot be reached, or a
workload does not exist or is not readable by you.";

/// Runs the subcommand.
///
/// # Errors
/// If the cluster or a workload cannot be read, or the output cannot be written.
pub fn run(args: &TraceArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (traces, caveats) = runtime.map_err(Failure::failed)?.block_on(follow(args))?;
    let is_failed = traces.iter().any(Trace::is_failed);
    args.report.write(
        ExitCode::from(u8::from(is_failed)),
        || text(&traces, &caveats),
        || traces.iter().map(|trace| object(trace, &caveats)).collect::<Vec<_>>(),
    )
}

async fn follow(args: &TraceArgs) -> Result<(Vec<Trace>, Vec<String>), Failure> {
    let targets = target::parse(&args.targets).map_err(Failure::unreadable)?;
    let cluster = ClusterReader::connect(&args.cluster).await?;
    let question = Question {
        namespace: args.namespace.clone().unwrap_or_else(|| cluster.namespace.clone()),
        targets: &targets,
        labels: None,
        installed: &args.installed,
    };
    let facts = Facts::read(&cluster, &args.installed).await;
    let (answer, known) = live::answer(&cluster, &facts, &question).await?;
    let mut traces = Vec::new();
    for workload in &answer.workloads {
        traces.extend(steps::of(&cluster, &known, workload, &answer.languages).await);
    }
    Ok((traces, answer.caveats))
}

fn text(traces: &[Trace], caveats: &[String]) -> String {
    let mut lines: Vec<String> = caveats.iter().map(|caveat| format!("warning: {caveat}")).collect();
    for trace in traces {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let language = trace.language.map(|language| format!(", {language}")).unwrap_or_default();
        let pod = trace.pod.as_ref().map(|pod| format!(", by pod {pod}")).unwrap_or_default();
        let subject = &trace.subject;
        lines.push(format!(
            "{}/{} in namespace {}{language}{pod}",
            subject.kind, subject.name, subject.namespace
        ));
        for step in &trace.steps {
            let (sign, code) = match &step.outcome {
                Outcome::Passed => ("✓", String::new()),
                Outcome::Unknown => ("?", String::new()),
                Outcome::Failed { code, .. } => ("✗", format!("{code}: ")),
            };
            lines.push(format!("  {sign} {}: {code}{}", step.title, step.message));
            if let Outcome::Failed { remedy: Some(remedy), .. } = &step.outcome {
                lines.push(format!("      to do: {remedy}"));
            }
        }
        match &trace.log {
            Some(Ok(log)) if !log.is_empty() => {
                lines.push("      log lines of the agent:".to_owned());
                lines.extend(log.lines().map(|line| format!("        {line}")));
            }
            Some(Err(why)) => lines.push(format!("      log: {why}")),
            _ => {}
        }
    }
    lines.iter().flat_map(|line| [one_line(line), "\n".to_owned()]).collect()
}

fn object(trace: &Trace, caveats: &[String]) -> Value {
    let step = |step: &steps::Step| {
        let (result, code, remedy) = match &step.outcome {
            Outcome::Passed => ("passed", None, None),
            Outcome::Unknown => ("unknown", None, None),
            Outcome::Failed { code, remedy } => ("failed", Some(code), remedy.as_ref()),
        };
        json!({"step": step.name, "result": result, "message": step.message, "code": code, "remedy": remedy})
    };
    json!({
        "kind": trace.subject.kind,
        "namespace": trace.subject.namespace,
        "name": trace.subject.name,
        "language": trace.language,
        "pod": trace.pod,
        "steps": trace.steps.iter().map(step).collect::<Vec<_>>(),
        "causes": trace.causes,
        "log": trace.log.as_ref().and_then(|log| log.as_ref().ok()),
        "logProblem": trace.log.as_ref().and_then(|log| log.as_ref().err()),
        "caveats": caveats.iter().chain(&trace.caveats).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use otel_webhook_server::subject::Subject;

    #[test]
    fn each_step_is_a_line_with_what_to_do_below_the_one_that_fails() {
        let step = |name, outcome, message: &str| steps::Step {
            name,
            title: name,
            outcome,
            message: message.to_owned(),
        };
        let remedy = Some("create it".to_owned());
        let mut trace = Trace {
            subject: Subject::new("Deployment", "shop", "order"),
            language: Some("java"),
            pod: Some("order-1".to_owned()),
            steps: vec![
                step("started", Outcome::Passed, "the pod is Ready"),
                step("exported", Outcome::Unknown, "a file\ndecides"),
                step("resolved", Outcome::Failed { code: "ServiceNotFound", remedy }, "no Service"),
            ],
            causes: Vec::new(),
            log: Some(Ok("otel: one\notel: two".to_owned())),
            caveats: Vec::new(),
        };
        let expected = "\
warning: not readable

Deployment/order in namespace shop, java, by pod order-1
  ✓ started: the pod is Ready
  ? exported: a file\\ndecides
  ✗ resolved: ServiceNotFound: no Service
      to do: create it
      log lines of the agent:
        otel: one
        otel: two
";
        assert_eq!(text(std::slice::from_ref(&trace), &["not readable".to_owned()]), expected);
        assert!(trace.is_failed());
        let found = object(&trace, &[]);
        assert_eq!(found["steps"][2]["code"], "ServiceNotFound");
        assert_eq!(found["steps"][1]["result"], "unknown");
        trace.steps.pop();
        assert!(!trace.is_failed());
    }
}
