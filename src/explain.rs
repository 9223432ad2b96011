//! `explain`: shows what would be injected into the pods of a stream or of workloads in a cluster, and why.

pub mod line;
pub mod live;
pub mod report;
pub mod target;

use std::{collections::BTreeSet, iter, process::ExitCode};

use clap::Args;
use serde_json::{Value, json};

use super::{
    cluster::{
        facts::{Facts, not_readable},
        flags::{ClusterFlags, InstalledFlags},
        reader::ClusterReader,
    },
    completions,
    output::{Failure, ReportFlags},
    stream::{FileFlags, Inputs, Review, StreamFlags, Streams},
    workload,
};
use line::Line;
use live::Question;
use otel_webhook_inject::{Outcome, mistakes::Mistake};
use otel_webhook_review::one_line;
use report::Answer;

/// Flags of `explain`.
#[derive(Debug, Args)]
#[command(
    mut_arg("filename", |file| file.required(false).required_unless_present_any(["all_namespaces", "targets", "selector"])),
    mut_arg("namespace", |namespace| namespace.help(NAMESPACE_HELP).long_help(None)),
    override_usage = USAGE
)]
pub struct ExplainArgs {
    /// Pods or workloads of a cluster, as for kubectl: TYPE/NAME ..., TYPE NAME ... or TYPE[,TYPE]. Types:
    /// deployment, statefulset, daemonset, cronjob, rollout (Argo), replicaset, job, pod, and their short names. A pod
    /// is explained by the workload that controls it
    #[arg(value_name = "TYPE/NAME", conflicts_with = "filename", add = completions::workloads())]
    targets: Vec<String>,

    /// Label selector of the workloads to explain, as for kubectl
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "filename", help_heading = "Cluster")]
    selector: Option<String>,

    /// Explain the workloads of all namespaces, by type or label selector
    #[arg(short = 'A', long, conflicts_with_all = ["filename", "namespace"], help_heading = "Cluster")]
    all_namespaces: bool,

    #[command(flatten)]
    cluster: ClusterFlags,

    #[command(flatten)]
    input: StreamFlags,

    #[command(flatten)]
    report: ReportFlags,

    /// Exit with status 1 if a new pod is not injected as it opts in, or if an annotation or label has no effect
    #[arg(long)]
    exit_code: bool,

    /// File of YAML or JSON documents with the nodes, such as the output of `kubectl get nodes -o yaml`, for the
    /// delivery "auto" with -f
    #[arg(long, value_name = "FILE|-", requires = "filename", help_heading = "Input")]
    nodes: Option<String>,

    #[command(flatten)]
    installed: InstalledFlags,
}

/// The forms of the command.
const USAGE: &str = "\
otel-webhook explain TYPE/NAME... [-n NAMESPACE] [OPTIONS]
       otel-webhook explain [TYPE] [-l SELECTOR] -A [OPTIONS]
       otel-webhook explain -f FILE|DIR|- [OPTIONS]";

/// The help of the namespace, which differs from that of other subcommands.
const NAMESPACE_HELP: &str = "Namespace of the workloads; by default that of the context. With -f, the namespace of \
                              documents that specify none, which is not written to them; by default \"default\"";

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Show what a new pod of a Deployment in a cluster would get and why, and what its pods have now:
    otel-webhook explain deployment/order -n shop
  For all workloads with a label, as JSON:
    otel-webhook explain -l app=order -n shop -o json
  For the Deployments of a team in all namespaces:
    otel-webhook explain deployments -l team=payments -A
  Show why a Deployment of a file is not injected:
    otel-webhook explain -f app.yaml --source instrumentations/
  Show which agents would be mounted in a cluster with these nodes:
    otel-webhook explain -f app.yaml --source instrumentations/ --delivery auto --nodes nodes.yaml
  Fail in a pipeline if a pod of a file would not be injected as it opts in:
    otel-webhook explain -f app.yaml --source instrumentations/ --exit-code
  For the pods of a namespace, without access of otel-webhook to the cluster:
    kubectl get pod,replicaset,instrumentation -n shop -o yaml | otel-webhook explain -f - -n shop

Exit status: 0; 1 with --exit-code if a new pod is not injected as it opts in; 2 if the input cannot be read or a document has no apiVersion or kind, or if the cluster cannot be
reached, or a workload does not exist or is not readable by you.";

/// Runs the subcommand.
///
/// # Errors
/// If the input or the cluster cannot be read, or the output cannot be written.
pub fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    if !args.targets.is_empty() || args.selector.is_some() || args.all_namespaces {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let answer = runtime.map_err(Failure::failed)?.block_on(ask(args))?;
        let code = args.code(answer.is_trouble());
        return args.report.write(code, || answer.text(), || answer.objects());
    }
    let streams = args.input.files.read()?;
    let mut documents = streams.documents()?;
    let of_nodes = args.nodes.as_deref().map(|file| FileFlags::one(file).read()).transpose()?;
    let nodes = of_nodes.as_ref().map(Streams::documents).transpose()?.unwrap_or_default();
    let inputs = Inputs::new(&args.input, &args.installed.injection, documents.iter().chain(&nodes))?;
    let reviews: Vec<Review> = documents.iter_mut().flat_map(|document| inputs.inject(document)).collect();
    let mut namespaces = Vec::new();
    for document in &mut documents {
        workload::mistaken_namespaces(&mut document.value, &mut namespaces);
    }
    let is_trouble =
        namespaces.iter().any(|(_, mistakes)| !mistakes.is_empty()) || reviews.iter().any(is_trouble);
    args.report.write(
        args.code(is_trouble),
        || table_of_all(&namespaces, &reviews, &args.installed.injection.languages.names()),
        || namespaces.iter().map(namespace_object).chain(reviews.iter().map(object)),
    )
}

impl ExplainArgs {
    fn code(&self, is_trouble: bool) -> ExitCode {
        ExitCode::from(u8::from(self.exit_code && is_trouble))
    }
}

/// Whether the pod is not injected as it opts in.
fn is_trouble(review: &Review) -> bool {
    let is_skipped = |outcome: &Outcome| outcome.findings.iter().any(|finding| finding.reason.is_trouble());
    review.mistakes.iter().any(Mistake::is_of_opt_in) || review.outcome.as_ref().map_or(true, is_skipped)
}

async fn ask(args: &ExplainArgs) -> Result<Answer, Failure> {
    let targets = target::parse(&args.targets).map_err(Failure::unreadable)?;
    let labels = args.selector.as_deref();
    if labels.is_some() && targets.iter().any(target::Target::is_named) {
        return Err(Failure::unreadable("--selector selects workloads, so none can be named as well"));
    }
    if args.all_namespaces && targets.iter().any(target::Target::is_named) {
        return Err(Failure::unreadable(
            "--all-namespaces explains workloads by type or label selector, not by name",
        ));
    }
    let cluster = ClusterReader::connect(&args.cluster).await?;
    let mut answer = Answer::default();
    let (namespaces, place) = if args.all_namespaces {
        let (namespaces, failed) = target::namespaces(&cluster, &targets, labels).await?;
        answer.caveats.extend(failed.iter().map(not_readable));
        (namespaces, "any namespace".to_owned())
    } else {
        let namespace = args.input.namespace.clone().unwrap_or_else(|| cluster.namespace.clone());
        let place = format!("namespace \"{namespace}\"");
        (BTreeSet::from([namespace]), place)
    };
    let facts = Facts::read(&cluster, &args.installed).await;
    for namespace in namespaces {
        let question = Question { namespace, targets: &targets, labels, installed: &args.installed };
        answer.add(live::answer(&cluster, &facts, &question).await?.0);
    }
    if answer.workloads.is_empty() {
        let caveats = answer.caveats.iter().map(|caveat| format!("\n{caveat}"));
        let none = format!("no workloads found in {place}");
        return Err(Failure::unreadable(iter::once(none).chain(caveats).collect::<String>()));
    }
    Ok(answer)
}

fn table_of_all(namespaces: &[(String, Vec<Mistake>)], reviews: &[Review], languages: &str) -> String {
    if reviews.is_empty() && namespaces.is_empty() {
        return "The input contains no pods and no pod templates.\n".to_owned();
    }
    let tables = reviews.iter().map(|review| table(review, languages));
    namespaces.iter().map(namespace_table).chain(tables).collect::<Vec<_>>().join("\n")
}

fn table(review: &Review, languages: &str) -> String {
    let mut lines = vec![format!("{} in namespace {}", review.title(), review.namespace)];
    match &review.outcome {
        Err(problem) => lines.push(format!("  the pod cannot be read: {problem}")),
        Ok(outcome) if outcome.findings.is_empty() => lines.push(line::not_opted_in(languages)),
        Ok(outcome) => lines.extend(line::table(&lines_of(review, outcome))),
    }
    lines.extend(review.mistakes.iter().map(line::mistake));
    lines.iter().flat_map(|line| [one_line(line), "\n".to_owned()]).collect()
}

fn lines_of(review: &Review, outcome: &Outcome) -> Vec<Line> {
    outcome.findings.iter().map(|finding| Line::of(finding, &review.fields)).collect()
}

fn namespace_table((name, mistakes): &(String, Vec<Mistake>)) -> String {
    let lines = iter::once(format!("Namespace/{name}")).chain(mistakes.iter().map(line::mistake));
    lines.flat_map(|line| [one_line(line), "\n".to_owned()]).collect()
}

fn namespace_object((name, mistakes): &(String, Vec<Mistake>)) -> Value {
    let mistakes: Vec<_> = mistakes.iter().map(line::mistake_object).collect();
    json!({"kind": "Namespace", "namespace": null, "name": name, "findings": [], "mistakes": mistakes})
}

fn object(review: &Review) -> Value {
    let mut object = json!({
        "kind": review.kind,
        "namespace": review.namespace,
        "name": review.name,
        "findings": [],
        "mistakes": review.mistakes.iter().map(line::mistake_object).collect::<Vec<_>>(),
    });
    match &review.outcome {
        Ok(outcome) => object["findings"] = lines_of(review, outcome).iter().map(Line::object).collect(),
        Err(problem) => object["problem"] = json!(problem),
    }
    object
}
