//! `status`: which running pods are injected, stale or missed, why, and how to bring them up to date.
//!
//! ```text
//! each cluster ── read once, pods in pages ──> census ── fleet::count ──> report ──> text or JSON
//! ```

mod mistakes;
mod plan;
mod text;

use std::{fs, path::PathBuf, process::ExitCode};

use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::core::ApiResource;
use serde_json::Value;

use super::{
    cluster::flags::{ClusterFlags, ClustersFlags, InstalledFlags},
    completions,
    flags::TeamFlags,
    output::{Failure, ReportFlags},
};
use crate::cluster::{
    facts::{Facts, caveats, not_readable},
    fleet,
    known::Known,
    reader::{ClusterReader, Part},
};
use otel_webhook_fleet::{
    census::Census,
    count::Counted,
    coverage::coverage,
    mistakes::PodMistakes,
    pod::RunningPod,
    report::{ClusterReport, Report, WorkloadRow},
};
use otel_webhook_server::page;

/// Flags of `status`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags, each of which may be given or not")]
pub struct StatusArgs {
    /// Show only the pods of this namespace
    #[arg(short, long, value_name = "NAMESPACE", help_heading = "Cluster", add = completions::namespaces())]
    namespace: Option<String>,

    /// Show the pods of all namespaces, which is the default
    #[arg(short = 'A', long, help_heading = "Cluster", conflicts_with = "namespace")]
    all_namespaces: bool,

    #[command(flatten)]
    clusters: ClustersFlags,

    #[command(flatten)]
    report: ReportFlags,

    #[command(flatten)]
    team: TeamFlags,

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

    /// Exit with status 1 if data of any pod does not arrive, by the status of Instrumentations (`controller
    /// --heard-source`), and with 2 if that is not known of any pod
    #[arg(long, help_heading = "Output")]
    silent: bool,

    #[command(flatten)]
    installed: InstalledFlags,
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
  Wait in a pipeline until all pods have the current configuration:
    until otel-webhook status -n shop --strict; do sleep 10; done
  The same until data of all pods arrives, as far as that is known:
    until otel-webhook status -n shop --silent; do sleep 10; done

States, from the best to the worst:
  injected     it has the agent, with the current configuration
  skipped      it opts in and has no agent, and a new pod would not get one either
  foreign      another injector, such as the operator, has injected it
  unconfirmed  whether it is up to date is not known
  stale        it has the agent, but a new pod would get another configuration or none
  missed       it has no agent, and a new pod would get one

A pod in any of these states is also counted as failing if a container or volume that injection added
cannot start, or if the agent is likely the reason why the application ends again and again.

Where injection is paused, the report begins with that, and ends with the commands that remove the agents of running pods.

Exit status: 0; 1 with --strict if any pod is stale, missed or failing, or with --silent if data of any pod does not arrive; 2 if
a cluster cannot be reached or its pods are not readable by you, or with --silent if it is not known whether data arrives.";

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
    let data = reports.iter().flat_map(|cluster| &cluster.report.instrumentations);
    let data: Vec<_> = data.filter_map(|row| row.pods.heard.zip(row.pods.silent)).collect();
    let is_known = !args.silent || data.iter().any(|(heard, silent)| heard + silent > 0);
    let is_silent = args.silent && data.iter().any(|(_, silent)| *silent > 0);
    let code = match (is_all_read && is_known, args.strict && is_wrong || is_silent) {
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
    let clusters = args.clusters.each();
    let is_alone = clusters.len() == 1;
    let (mut reports, mut is_all_read) = (Vec::new(), true);
    for cluster in &clusters {
        match read(cluster, args).await {
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
        taken: now(),
        incomplete: vec![failure.to_string()],
        report: Report::default(),
    }
}

/// Reads a cluster with the permissions of the user.
///
/// # Errors
/// If it cannot be reached, the namespace does not exist, or the pods are not readable.
async fn read(flags: &ClusterFlags, args: &StatusArgs) -> Result<ClusterReport, Failure> {
    let scope = args.namespace.as_deref();
    let cluster = ClusterReader::connect(flags).await?;
    let facts = Facts::read(&cluster, &args.installed).await;
    let mut known = Known::list(&cluster, scope, facts.flags(&args.installed)).await;
    if let Some(name) = scope.filter(|_| known.namespaces.is_empty() && !known.unread.namespaces) {
        return Err(Failure::unreadable(format!("--namespace: namespace \"{name}\" not found")));
    }
    let taken = now();
    let (census, mistaken) = pods(&cluster, scope).await?;
    let registration = facts.selecting();
    let (mut counted, named) = fleet::count(&census, &known, registration);
    // Pods may name Instrumentations of namespaces that were not listed yet.
    if !named.is_empty() && known.learn(&cluster, named).await {
        (counted, _) = fleet::count(&census, &known, registration);
    }
    let Counted { mut report, pods, .. } = counted;
    let mut incomplete = incomplete(&facts, &known, args.installed.own_flags);
    if args.plan {
        incomplete.extend(plan::write(&cluster, scope, &facts, &known, pods, &mut report).await);
    }
    let mut outside = fleet::outside(&facts, &known);
    if report.workloads.iter().any(|row| row.command.is_some()) {
        outside.never = plan::refusing(&cluster, scope).await;
    }
    report.withhold(&outside);
    fleet::hear(&mut report, &known);
    let team =
        |namespace: &str| known.namespaces.get(namespace)?.get(args.team.team_label.as_ref()?).cloned();
    report.coverage = coverage(&census, &report.workloads, team);
    mistakes::write(&cluster, scope, &known, &mistaken, &mut report).await;
    complete(&mut report, flags);
    Ok(ClusterReport { cluster: cluster.name, taken, incomplete, report })
}

/// Adds the flags that name the cluster to all commands.
fn complete(report: &mut Report, flags: &ClusterFlags) {
    let of_row = |row: &mut WorkloadRow| {
        let removal = row.paused.as_mut().and_then(|paused| paused.command.as_mut());
        for command in row.command.iter_mut().chain(removal) {
            *command = flags.complete(command);
        }
    };
    report.workloads.iter_mut().for_each(of_row);
    for pause in &mut report.paused {
        pause.command = flags.complete(&pause.command);
    }
}

/// Returns the time in whole seconds, like all times of Kubernetes.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Lists the pods. Each is reduced as its page arrives.
async fn pods(cluster: &ClusterReader, scope: Option<&str>) -> Result<(Census, PodMistakes), Failure> {
    let (mut census, mut mistakes) = (Census::default(), PodMistakes::default());
    let take = |pod: Value| {
        if let Some(running) = RunningPod::read(&pod) {
            mistakes.put(&running, &pod["metadata"]);
            census.put(running);
        }
    };
    let told = cluster.each(&ApiResource::erase::<Pod>(&()), scope, Part::Whole, take).await;
    told.map_err(|failed| {
        let advice = if scope.is_none() { "; --namespace reads those of one namespace" } else { "" };
        Failure::unreadable(format!("{}{advice}", not_readable(&failed)))
    })?;
    Ok((census, mistakes))
}

/// Returns what the report does not know.
fn incomplete(facts: &Facts, known: &Known, own_flags: bool) -> Vec<String> {
    let mut incomplete = caveats(facts, known, own_flags);
    if let Some(registration) = facts.selecting()
        && registration.pods().next().is_none()
    {
        let names = registration.names.join(", ");
        incomplete.push(format!("no webhook of {names} selects new pods: pods are not injected"));
    }
    incomplete
}
