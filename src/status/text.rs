//! The report as text: tables of Instrumentations and workloads, reasons, and commands.

use std::collections::BTreeMap;

use jiff::Timestamp;
use otel_webhook_fleet::{
    mistakes::MistakeRow,
    report::{
        ClusterReport, Counts, FailureRow, InstrumentationRow, LanguageRow, PauseRow, Report, WorkloadRow,
    },
    state::State,
};
use otel_webhook_inject::image;
use otel_webhook_review::one_line;

use crate::output::table;

/// How many workloads with a reason are named.
const NAMED: usize = 3;

/// How many reasons are explained; large clusters have thousands.
const MOST_REASONS: usize = 50;

const OF_INSTRUMENTATIONS: [&str; 10] = [
    "NAMESPACE",
    "NAME",
    "MATCHED",
    "INJECTED",
    "STALE",
    "MISSED",
    "SKIPPED",
    "FOREIGN",
    "UNCONFIRMED",
    "FAILING",
];

const OF_DATA: [&str; 4] = ["NAMESPACE", "NAME", "HEARD", "SILENT"];

const OF_WORKLOADS: [&str; 9] =
    ["NAMESPACE", "WORKLOAD", "LANGUAGE", "STATE", "PODS", "FAILING", "AGENT", "REASON", "SINCE"];

const OF_RESTARTS: [&str; 4] = ["NAMESPACE", "WORKLOAD", "RESTART", "WHY"];

/// Returns the report of all clusters; `is_outdated_only` is whether it has only workloads with stale or missed pods.
pub fn text(reports: &[ClusterReport], is_outdated_only: bool) -> String {
    let is_one = reports.len() == 1;
    let of = |report: &ClusterReport| {
        let heading = (!is_one).then(|| vec![format!("Cluster {}", report.cluster)]);
        heading.into_iter().chain(sections(report, is_outdated_only)).collect::<Vec<_>>()
    };
    let sections: Vec<Vec<String>> = reports.iter().flat_map(of).collect();
    let written = |lines: &Vec<String>| -> String {
        lines.iter().flat_map(|line| [one_line(line), "\n".to_owned()]).collect()
    };
    sections.iter().map(written).collect::<Vec<_>>().join("\n")
}

/// Returns the parts of a report, each with its lines.
fn sections(cluster: &ClusterReport, is_outdated_only: bool) -> Vec<Vec<String>> {
    let report = &cluster.report;
    let warnings = cluster.incomplete.iter().map(|why| format!("warning: {why}")).collect();
    let mut sections = vec![paused(&report.paused), warnings];
    if !report.instrumentations.is_empty() {
        sections.push(table(OF_INSTRUMENTATIONS, report.instrumentations.iter().map(instrumentation)));
    }
    let heard: Vec<_> = report.instrumentations.iter().filter_map(heard).collect();
    if !heard.is_empty() {
        sections.push(table(OF_DATA, heard));
    }
    if report.workloads.is_empty() {
        let none = if is_outdated_only {
            "No workload has stale or missed pods."
        } else {
            "No running pod opts in or has an agent."
        };
        sections.push(vec![none.to_owned()]);
    } else {
        let rows = report.workloads.iter().flat_map(|row| rows(row, cluster.taken));
        sections.push(table(OF_WORKLOADS, rows));
    }
    sections.push(failures(&report.workloads));
    sections.push(reasons(&report.workloads));
    let restarts: Vec<_> = report.workloads.iter().filter_map(restart).collect();
    if !restarts.is_empty() {
        sections.push(table(OF_RESTARTS, restarts));
    }
    sections.push(mistakes(report));
    sections.push(commands(&report.workloads));
    sections.push(removals(&report.workloads));
    sections.retain(|lines| !lines.is_empty());
    sections
}

/// Returns what the controller has written of the data that arrives.
fn heard(row: &InstrumentationRow) -> Option<[String; 4]> {
    let (heard, silent) = row.pods.heard.zip(row.pods.silent)?;
    Some([row.namespace.clone(), row.name.clone(), heard.to_string(), silent.to_string()])
}

fn instrumentation(row: &InstrumentationRow) -> [String; 10] {
    let Counts { matched, injected, stale, missed, skipped, foreign, unconfirmed, failing, .. } = row.pods;
    [
        row.namespace.clone(),
        row.name.clone(),
        matched.to_string(),
        injected.to_string(),
        stale.to_string(),
        missed.to_string(),
        skipped.to_string(),
        foreign.to_string(),
        unconfirmed.to_string(),
        failing.to_string(),
    ]
}

/// Returns a row for each language of a workload.
fn rows(row: &WorkloadRow, taken: Timestamp) -> impl Iterator<Item = [String; 9]> {
    let none = || "-".to_owned();
    row.languages.iter().map(move |language| {
        [
            row.workload.namespace.clone(),
            row.workload.argument(),
            language.language.to_owned(),
            language.state.name().to_owned(),
            pods(language),
            language.pods.failing.to_string(),
            agents(&language.images).unwrap_or_else(none),
            language.reason.map_or_else(none, str::to_owned),
            language.since.map_or_else(none, |since| format!("{} ago", age(since, taken))),
        ]
    })
}

fn restart(row: &WorkloadRow) -> Option<[String; 4]> {
    let restart = row.restart.as_ref()?;
    let workload = row.workload.argument();
    Some([row.workload.namespace.clone(), workload, restart.code.clone(), restart.message.clone()])
}

/// Returns the number of pods, and how many have which state if they differ, the worst first.
fn pods(row: &LanguageRow) -> String {
    let LanguageRow { pods, state, .. } = row;
    if pods.of(*state) == pods.matched {
        return pods.matched.to_string();
    }
    let counted = State::ALL.iter().rev().map(|state| (state, pods.of(*state)));
    let counted = counted.filter(|(_, count)| *count > 0);
    let counted: Vec<_> = counted.map(|(state, count)| format!("{count} {}", state.name())).collect();
    format!("{}: {}", pods.matched, counted.join(", "))
}

/// Returns the versions of images, with the number of pods if there are several.
fn agents(images: &[(String, usize)]) -> Option<String> {
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    for (image, count) in images {
        *versions.entry(image::version(image).unwrap_or(image)).or_default() += count;
    }
    if let (1, Some((version, _))) = (versions.len(), versions.first_key_value()) {
        return Some((*version).to_owned());
    }
    let listed: Vec<_> = versions.iter().map(|(version, count)| format!("{version} ({count})")).collect();
    (!listed.is_empty()).then(|| listed.join(", "))
}

/// Returns how long ago a time was, in the largest unit that still tells it well.
fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = (now.as_second() - since.as_second()).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Returns what fails because of what injection added, then what may: with the kubelet's message, and what to do.
fn failures(workloads: &[WorkloadRow]) -> Vec<String> {
    let all = workloads.iter().flat_map(|row| row.failures.iter().map(move |failure| (row, failure)));
    let (counted, others): (Vec<_>, Vec<_>) = all.partition(|(_, failure)| failure.is_counted);
    let lines = |rows: Vec<(&WorkloadRow, &FailureRow)>| {
        rows.into_iter().flat_map(|(row, failure)| lines_of_failure(row, failure)).collect()
    };
    let counted = headed("Failing because of what injection added:", lines(counted));
    let others = headed("Failing, though not known to be because of the agent:", lines(others));
    [counted, others].concat()
}

fn lines_of_failure(row: &WorkloadRow, failure: &FailureRow) -> [String; 3] {
    let FailureRow { language, container, code, message, remedy, kubelet, pods, .. } = failure;
    let kubelet = if kubelet.is_empty() { String::new() } else { format!(": {kubelet}") };
    [
        format!(
            "  {}, {language}: {code} of container {container} in {pods} of its pods{kubelet}",
            row.workload
        ),
        format!("    {message}"),
        format!("    {remedy}"),
    ]
}

/// Returns each reason once, as a sentence, with the workloads that it is about.
fn reasons(workloads: &[WorkloadRow]) -> Vec<String> {
    let mut reasons: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for row in workloads {
        for language in &row.languages {
            let Some(code) = &language.reason else { continue };
            let named = reasons.entry((code, language.message.as_deref().unwrap_or_default())).or_default();
            let name = row.workload.to_string();
            if named.last() != Some(&name) {
                named.push(name);
            }
        }
    }
    let line = |((code, message), named): (&(&str, &str), &Vec<String>)| {
        let more = named.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("  {code}: {message} ({}{more})", named[..named.len().min(NAMED)].join(", "))
    };
    let mut lines: Vec<String> = reasons.iter().take(MOST_REASONS).map(line).collect();
    if reasons.len() > MOST_REASONS {
        lines.push(format!("  … and {} more; -o json has all", reasons.len() - MOST_REASONS));
    }
    headed("Reasons:", lines)
}

/// Returns the command of each workload with stale or missed pods, or a comment where there is none.
fn commands(workloads: &[WorkloadRow]) -> Vec<String> {
    // What is paused is reported first, with how to resume.
    let outdated = workloads.iter().filter(|row| row.state.is_outdated() && row.paused.is_none());
    let line = |row: &WorkloadRow| match (&row.command, &row.not_advised) {
        (_, Some(not_advised)) => format!("  # {}: {}", row.workload, not_advised.message),
        (Some(command), None) => format!("  {command}"),
        (None, None) => format!("  # {}: {}", row.workload, row.workload.by_hand()),
    };
    headed("To bring stale and missed pods up to date:", outdated.map(line).collect())
}

/// Returns the command of each workload that has agents which new pods would not get.
fn removals(workloads: &[WorkloadRow]) -> Vec<String> {
    let commands = workloads.iter().filter_map(|row| row.paused.as_ref()?.command.as_ref());
    headed(
        "To remove the agents of running pods while injection is paused:",
        commands.map(|command| format!("  {command}")).collect(),
    )
}

/// Returns what nothing reads, and what pods were injected with in spite of a warning.
fn mistakes(report: &Report) -> Vec<String> {
    let line = |MistakeRow { object, finding }: &MistakeRow| {
        let field = if finding.field.is_empty() { String::new() } else { format!(" {}:", finding.field) };
        format!("  {object}:{field} {}; {} ({})", finding.message, finding.remedy, finding.code)
    };
    let more = report.more_mistakes + report.mistakes.len().saturating_sub(MOST_REASONS);
    let lines = report.mistakes.iter().take(MOST_REASONS).map(line);
    let more = (more > 0).then(|| format!("  … and {more} more"));
    headed("Mistakes:", lines.chain(more).collect())
}

/// Returns what pauses injection, and how to resume.
fn paused(pauses: &[PauseRow]) -> Vec<String> {
    let line = |row: &PauseRow| {
        format!("  {}: {} start without agents; to resume: {}", row.by, row.pods, row.command)
    };
    headed("Injection is paused:", pauses.iter().map(line).collect())
}

fn headed(heading: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    [vec![heading.to_owned()], lines].concat()
}

#[cfg(test)]
mod tests;
