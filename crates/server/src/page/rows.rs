//! The rows of the page's tables, as text.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use otel_webhook_fleet::{
    coverage::CoverageRow as CoverageOf,
    mistakes as report_mistakes,
    report::{self, ClusterReport, Counts, FailureRow, LanguageRow, WorkloadRow, WorstWorkload},
    silent::Likely,
    state::State,
    workload::Workload,
};
use otel_webhook_inject::line::one_line;

/// The states, from the worst to the best.
pub const STATES: [State; 6] =
    [State::Missed, State::Stale, State::Unconfirmed, State::Foreign, State::Skipped, State::Injected];

/// A cluster with the number of its workloads by state.
pub struct ClusterRow {
    pub name: String,
    pub taken: Timestamp,
    pub pods: usize,
    pub workloads: usize,
    pub by_state: [usize; 6],
}

/// How many of the running pods have an agent: of a cluster, a team or a namespace.
#[derive(Default)]
pub struct CoverageRow {
    pub cluster: String,
    /// Whose pods are counted, such as `namespace shop`.
    pub of: String,
    pub pods: usize,
    pub opted_in: usize,
    pub with_agent: usize,
}

/// A language of a workload.
pub struct Row {
    pub cluster: String,
    pub namespace: String,
    pub workload: String,
    pub language: String,
    pub state: State,
    /// The place of the state in [`STATES`].
    pub order: usize,
    /// The states of its pods, and `failing` and `silent` if one is, separated by spaces.
    pub states: String,
    /// The number of pods.
    pub matched: usize,
    /// The number of pods in each state.
    pub pods: String,
    /// The number of pods that fail because of what injection added.
    pub failing: usize,
    /// The number of pods of which data arrives, or not although it should, if that is known of one.
    pub data: Option<[usize; 2]>,
    /// What fails, with the kubelet's message and what to do, and why no data arrives.
    pub failures: Vec<Failure>,
    pub images: Vec<String>,
    pub code: Option<String>,
    pub message: String,
    pub since: Option<Timestamp>,
    pub command: Option<String>,
    /// What to do where no command does it.
    pub advice: Option<String>,
    /// What becomes of it by restarts.
    pub restart: Option<String>,
}

/// A container that cannot start or stay, or the likely cause of missing data.
pub struct Failure {
    pub code: String,
    /// What it means, in which container, and what the kubelet says.
    pub message: String,
    pub remedy: String,
}

/// An Instrumentation.
pub struct InstrumentationRow {
    pub cluster: String,
    pub namespace: String,
    pub name: String,
    pub matched: usize,
    pub by_state: [usize; 6],
    pub failing: usize,
    /// As of a [`Row`].
    pub data: Option<[usize; 2]>,
    pub outdated: Vec<String>,
    pub more: usize,
}

impl ClusterRow {
    /// Counts the workloads of a cluster.
    pub fn of(cluster: &ClusterReport) -> Self {
        let workloads = &cluster.report.workloads;
        let with = |state| workloads.iter().filter(|row| row.state == state).count();
        Self {
            name: one_line(&*cluster.cluster),
            taken: cluster.taken,
            pods: workloads.iter().map(|row| row.pods).sum(),
            workloads: workloads.len(),
            by_state: STATES.map(with),
        }
    }
}

impl CoverageRow {
    /// Returns the rows of a cluster: the whole, its teams and its namespaces.
    pub fn of(cluster: &ClusterReport) -> Vec<Self> {
        let all = &cluster.report.coverage;
        let mut teams: BTreeMap<&str, Vec<&CoverageOf>> = BTreeMap::new();
        for row in all {
            if let Some(team) = &row.team {
                teams.entry(team).or_default().push(row);
            }
        }
        let sum = |of: String, rows: &[&CoverageOf]| Self {
            cluster: one_line(&*cluster.cluster),
            of: one_line(of),
            pods: rows.iter().map(|row| row.pods).sum(),
            opted_in: rows.iter().map(|row| row.opted_in).sum(),
            with_agent: rows.iter().map(|row| row.with_agent).sum(),
        };
        let whole =
            (!all.is_empty()).then(|| sum("all namespaces".to_owned(), &all.iter().collect::<Vec<_>>()));
        let teams = teams.into_iter().map(|(team, rows)| sum(format!("team {team}"), &rows));
        let namespaces = all.iter().map(|row| sum(format!("namespace {}", row.namespace), &[row]));
        whole.into_iter().chain(teams).chain(namespaces).collect()
    }

    /// Returns how many of `whole` have an agent, in percent: 100 only if all have one.
    pub fn share(&self, whole: usize) -> Option<usize> {
        (100 * self.with_agent).checked_div(whole)
    }
}

impl InstrumentationRow {
    /// Returns the rows of a cluster.
    pub fn of(cluster: &ClusterReport) -> impl Iterator<Item = Self> {
        cluster.report.instrumentations.iter().map(|row| Self {
            cluster: one_line(&*cluster.cluster),
            namespace: one_line(&*row.namespace),
            name: one_line(&*row.name),
            matched: row.pods.matched,
            by_state: STATES.map(|state| row.pods.of(state)),
            failing: row.pods.failing,
            data: arrives(row.pods),
            outdated: row.workloads.iter().map(outdated).collect(),
            more: row.more,
        })
    }
}

fn outdated(row: &WorstWorkload) -> String {
    let counts = [
        (row.failing, "failing"),
        (row.missed, State::Missed.name()),
        (row.stale, State::Stale.name()),
        (row.silent.unwrap_or_default(), "silent"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<_> = counts.map(|(count, name)| format!("{count} {name}")).collect();
    one_line(format!("{} in {}: {}", name(&row.workload), row.workload.namespace, counts.join(", ")))
}

/// Returns a row for each language of the workloads, the worst state first, else in the order of the reports.
pub fn of(clusters: &[ClusterReport]) -> Vec<Row> {
    let mut rows = Vec::new();
    for cluster in clusters {
        for workload in &cluster.report.workloads {
            rows.extend(workload.languages.iter().map(|language| row(&cluster.cluster, workload, language)));
        }
    }
    rows.sort_by_key(|row| row.order);
    rows
}

fn row(cluster: &str, of: &WorkloadRow, language: &LanguageRow) -> Row {
    let (command, advice) = to_do(of, language);
    let failures = of.failures.iter().filter(|one| one.language == language.language).map(failure);
    let cause = language.data.as_ref().and_then(|data| data.cause.as_ref());
    Row {
        cluster: one_line(cluster),
        namespace: one_line(&*of.workload.namespace),
        workload: one_line(name(&of.workload)),
        language: one_line(language.language),
        state: language.state,
        order: STATES.iter().position(|state| *state == language.state).expect("all states are listed"),
        states: states(language),
        matched: language.pods.matched,
        pods: pods(language),
        failing: language.pods.failing,
        data: arrives(language.pods),
        failures: failures.chain(cause.map(silence)).collect(),
        images: images(language),
        code: language.reason.map(one_line),
        message: language.message.as_deref().map(one_line).unwrap_or_default(),
        since: language.since,
        command: command.map(one_line),
        advice: advice.map(one_line),
        restart: of
            .restart
            .as_ref()
            .map(|restart| one_line(format!("{}: {}", restart.code, restart.message))),
    }
}

fn failure(row: &FailureRow) -> Failure {
    let kubelet = if row.kubelet.is_empty() { String::new() } else { format!(" ({})", row.kubelet) };
    Failure {
        code: one_line(row.code),
        message: one_line(format!("container {}: {}{kubelet}", row.container, row.message)),
        remedy: one_line(&*row.remedy),
    }
}

fn silence(Likely { cause, .. }: &Likely) -> Failure {
    Failure {
        code: one_line(cause.code()),
        message: one_line(cause.to_string()),
        remedy: one_line(cause.remedy().unwrap_or_default()),
    }
}

/// Returns the number of pods of which data arrives, or not although it should; `None` if neither is known of one.
fn arrives(pods: Counts) -> Option<[usize; 2]> {
    let (heard, silent) = pods.heard.zip(pods.silent)?;
    (heard + silent > 0).then_some([heard, silent])
}

/// Returns the command that brings a language up to date, or what else does. The command is that of the workload, which
/// may be there because of another language.
fn to_do<'r>(of: &'r WorkloadRow, language: &LanguageRow) -> (Option<&'r str>, Option<&'r str>) {
    if !language.state.is_outdated() {
        return (None, None);
    }
    match (&of.command, &of.not_advised) {
        (_, Some(not_advised)) => (None, Some(&not_advised.message)),
        (Some(command), None) => (Some(command), None),
        (None, None) => (None, Some(of.workload.by_hand())),
    }
}

fn name(workload: &Workload) -> String {
    format!("{}/{}", workload.kind, workload.name)
}

fn states(row: &LanguageRow) -> String {
    let there = STATES.into_iter().filter(|state| row.pods.of(*state) > 0).map(State::name);
    let failing = (row.pods.failing > 0).then_some("failing");
    let silent = row.pods.silent.filter(|silent| *silent > 0).map(|_| "silent");
    there.chain(failing).chain(silent).collect::<Vec<_>>().join(" ")
}

/// Returns the number of pods in each state, the worst first.
fn pods(row: &LanguageRow) -> String {
    let counted = STATES.map(|state| (row.pods.of(state), state.name()));
    let counted = counted.iter().filter(|(count, _)| *count > 0);
    counted.map(|(count, state)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
}

/// Returns the images of the agents, with the number of pods if there are several.
fn images(row: &LanguageRow) -> Vec<String> {
    let is_one = row.images.len() == 1;
    let line = |(image, count): &(String, usize)| {
        one_line(if is_one { image.clone() } else { format!("{image} ({count})") })
    };
    row.images.iter().map(line).collect()
}

/// Something that pauses injection.
pub struct PauseRow {
    pub cluster: String,
    pub sentence: String,
    /// The command that resumes.
    pub command: String,
}

/// Returns what pauses injection.
pub fn paused(clusters: &[ClusterReport]) -> Vec<PauseRow> {
    let of_cluster = |cluster: &ClusterReport| -> Vec<_> {
        let row = |pause: &report::PauseRow| PauseRow {
            cluster: one_line(&*cluster.cluster),
            sentence: one_line(format!("{}: {} start without agents", pause.by, pause.pods)),
            command: one_line(&*pause.command),
        };
        cluster.report.paused.iter().map(row).collect()
    };
    clusters.iter().flat_map(of_cluster).collect()
}

/// Returns why restarts are stopped, with the cluster.
pub fn stopped(clusters: &[ClusterReport]) -> Vec<(String, String)> {
    let of_cluster = |cluster: &ClusterReport| -> BTreeSet<(String, String)> {
        let stopped = cluster.report.workloads.iter().filter(|row| row.is_stopped());
        let message = |row: &WorkloadRow| row.not_advised.as_ref().map(|why| one_line(&*why.message));
        stopped.filter_map(|row| Some((one_line(&*cluster.cluster), message(row)?))).collect()
    };
    clusters.iter().flat_map(of_cluster).collect()
}

/// A mistake of an object.
pub struct MistakeRow {
    pub cluster: String,
    pub namespace: String,
    pub object: String,
    pub code: &'static str,
    pub field: String,
    pub message: String,
    pub remedy: String,
}

/// Returns the mistakes, and how many more there are.
pub fn mistakes(clusters: &[ClusterReport]) -> (Vec<MistakeRow>, usize) {
    let of_cluster = |cluster: &ClusterReport| -> Vec<_> {
        let row = |row: &report_mistakes::MistakeRow| MistakeRow {
            cluster: one_line(&*cluster.cluster),
            namespace: one_line(&*row.object.namespace),
            object: one_line(name(&row.object)),
            code: row.finding.code,
            field: one_line(&*row.finding.field),
            message: one_line(&*row.finding.message),
            remedy: one_line(&*row.finding.remedy),
        };
        cluster.report.mistakes.iter().map(row).collect()
    };
    let more = clusters.iter().map(|cluster| cluster.report.more_mistakes).sum();
    (clusters.iter().flat_map(of_cluster).collect(), more)
}

/// Returns what is not known, with the cluster.
pub fn incomplete(clusters: &[ClusterReport]) -> Vec<(String, String)> {
    let of_cluster = |cluster: &ClusterReport| -> Vec<_> {
        cluster.incomplete.iter().map(|why| (one_line(&*cluster.cluster), one_line(&**why))).collect()
    };
    clusters.iter().flat_map(of_cluster).collect()
}
