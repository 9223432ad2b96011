//! `status`: which running pods are injected, stale or missed, why, and how to bring them up to date.
//!
//! ```text
//! each cluster ── read once, pods in pages ──> census ── fleet::count ──> report ──> text or JSON
//! ```

mod plan;
mod read;
mod text;

use std::{fs, path::PathBuf, process::ExitCode};

use clap::Args;

use super::{
    cluster::flags::{ClusterFlags, ClustersFlags},
    failure::Failure,
    flags::InjectionFlags,
    output::ReportFlags,
};
use crate::page;
use otel_webhook_fleet::report::{ClusterReport, Report};
use read::Question;

/// Flags of `status`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags, each of which may be given or not")]
pub struct StatusArgs {
    /// Show only the pods of this namespace
    #[arg(short, long, value_name = "NAMESPACE", help_heading = "Cluster")]
    namespace: Option<String>,

    #[command(flatten)]
    clusters: ClustersFlags,

    /// Name of the webhook configurations; may be repeated; by default, they are found by the names of their
    /// webhooks
    #[arg(
        long,
        env = "OTEL_WEBHOOK_WEBHOOK_CONFIGURATION",
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Cluster"
    )]
    webhook_configuration: Vec<String>,

    #[command(flatten)]
    report: ReportFlags,

    /// Show only the workloads with stale or missed pods
    #[arg(long, help_heading = "Output")]
    outdated: bool,

    /// Say which workloads a controller with --restarts would restart, when, and why not the others
    #[arg(long, help_heading = "Output")]
    plan: bool,

    /// Write a page to this file as well: one HTML file that needs nothing else, with filters
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,

    /// Exit with status 1 if any pod is stale, missed or failing
    #[arg(long, help_heading = "Output")]
    strict: bool,

    /// Use the injection flags of this command instead of those of the webhook's pods
    #[arg(long, env = "OTEL_WEBHOOK_OWN_FLAGS", help_heading = "Injection")]
    own_flags: bool,

    #[command(flatten)]
    injection: InjectionFlags,
}

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Show the pods of the whole cluster:
    otel-webhook status
  Show what is to be restarted in a namespace:
    otel-webhook status -n shop --outdated
  Show several clusters, as one JSON object for each:
    otel-webhook status --context staging,production -o json
  Write a page about two clusters:
    otel-webhook status --context staging,production --html status.html
  Show what would be restarted by consent, when, and why not the rest:
    otel-webhook status --plan
  Wait in a pipeline until all pods have the present configuration:
    until otel-webhook status -n shop --strict; do sleep 10; done

States, from the best to the worst:
  injected     it has the agent, with the present configuration
  skipped      it opts in and has no agent, and a new pod would not get one either
  foreign      another injector, such as the operator, has injected it
  unconfirmed  whether it is up to date is not known
  stale        it has the agent, but a new pod would get another configuration or none
  missed       it has no agent, and a new pod would get one

A pod in any of these states is also counted as failing if a container or volume that injection added
cannot start, or if the agent is likely the reason why the application ends again and again.

Where injection is paused, the report begins with that, and ends with the commands that remove the agents of running pods.

Exit status: 0; 1 with --strict if any pod is stale, missed or failing; 2 if a cluster cannot be reached or its pods are not
readable by you.";

/// Runs the subcommand.
///
/// # Errors
/// If the cluster cannot be read, or the report cannot be written.
pub fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (mut reports, is_all_read) = runtime.map_err(Failure::failed)?.block_on(read_all(args))?;
    let mut workloads = reports.iter().flat_map(|cluster| &cluster.report.workloads);
    // Of what is shown.
    let is_wrong = workloads.any(|row| row.state.is_outdated() || !args.outdated && row.failing > 0);
    if args.outdated {
        for cluster in &mut reports {
            cluster.report.workloads.retain(|row| row.state.is_outdated());
        }
    }
    let code = match (is_all_read, args.strict && is_wrong) {
        (false, _) => 2,
        (true, is_bad) => u8::from(is_bad),
    };
    if let Some(file) = &args.html {
        fs::write(file, page::page(&reports))
            .map_err(|error| Failure::failed(format!("--html {}: {error}", file.display())))?;
    }
    args.report.write(
        ExitCode::from(code),
        || text::text(&reports, args.outdated),
        || reports.iter().map(|cluster| serde_json::json!(cluster)),
    )
}

/// Reads the clusters one after another. Of several, one that cannot be read does not keep the others from being
/// reported.
async fn read_all(args: &StatusArgs) -> Result<(Vec<ClusterReport>, bool), Failure> {
    let question = Question {
        namespace: args.namespace.as_deref(),
        configurations: &args.webhook_configuration,
        injection: &args.injection,
        own_flags: args.own_flags,
        plan: args.plan,
    };
    let clusters = args.clusters.each();
    let is_alone = clusters.len() == 1;
    let (mut reports, mut is_all_read) = (Vec::new(), true);
    for cluster in &clusters {
        match read::read(cluster, &question).await {
            Ok(report) => reports.push(report),
            Err(failure) if is_alone => return Err(failure),
            Err(failure) => {
                is_all_read = false;
                reports.push(unread(cluster, &failure));
            }
        }
    }
    Ok((reports, is_all_read))
}

/// Returns the report of a cluster that cannot be read.
fn unread(cluster: &ClusterFlags, failure: &Failure) -> ClusterReport {
    ClusterReport {
        cluster: cluster.name().unwrap_or_default(),
        taken: read::now(),
        incomplete: vec![failure.to_string()],
        report: Report::default(),
    }
}
