//! Reports about running pods.

use otel_webhook_fleet::{
    advice::NotAdvised,
    coverage::CoverageRow,
    report::{ClusterReport, Counts, FailureRow, LanguageRow, Report, WorkloadRow},
    state::State,
    workload::Workload,
};

/// Returns the counts of so many pods in each state.
pub fn counts(states: &[(State, usize)]) -> Counts {
    let mut counts = Counts::default();
    for (state, count) in states {
        (0..*count).for_each(|_| counts.add(*state));
    }
    counts
}

/// Returns a language with so many pods in each state, and the code and the sentence of the reason for the worst one.
pub fn language(
    language: &'static str,
    states: &[(State, usize)],
    reason: Option<(&'static str, &str)>,
) -> LanguageRow {
    LanguageRow {
        language,
        pods: counts(states),
        state: states.iter().map(|(state, _)| *state).max().expect("a pod"),
        reason: reason.map(|(code, _)| code),
        message: reason.map(|(_, message)| message.to_owned().into()),
        instrumentation: Some("shop/default".to_owned()),
        images: Vec::new(),
        since: Some("2026-06-30T08:15:00Z".parse().expect("a time")),
        data: None,
    }
}

/// Returns a workload, with the command that brings it up to date if there is one.
pub fn workload(kind: &str, namespace: &str, name: &str, languages: Vec<LanguageRow>) -> WorkloadRow {
    let workload = Workload::new(kind, namespace, name);
    let is_outdated = languages.iter().any(|row| row.state.is_outdated());
    let is_not_selected = languages.iter().any(|row| row.reason == Some("NotSelected"));
    let with_agent = |pods: Counts| pods.matched - pods.missed - pods.skipped;
    WorkloadRow {
        with_agent: languages.iter().map(|row| with_agent(row.pods)).max().expect("a language"),
        pods: languages.iter().map(|row| row.pods.matched).max().expect("a language"),
        state: languages.iter().map(|row| row.state).max().expect("a language"),
        failing: 0,
        failures: Vec::new(),
        command: (is_outdated && !is_not_selected).then(|| workload.restart_command()).flatten(),
        not_advised: is_not_selected.then(NotAdvised::not_selected),
        paused: None,
        restart: None,
        workload,
        languages,
    }
}

/// Returns how many pods of a namespace there are, have opted in and have an agent.
pub fn covered(namespace: &str, team: Option<&str>, [pods, opted_in, with_agent]: [usize; 3]) -> CoverageRow {
    let (namespace, team) = (namespace.to_owned(), team.map(str::to_owned));
    CoverageRow { namespace, team, pods, opted_in, with_agent }
}

/// Returns why a container of two pods fails.
pub fn failure(language: &'static str, container: &str, code: &'static str, is_counted: bool) -> FailureRow {
    FailureRow {
        language,
        container: container.to_owned(),
        code,
        is_counted,
        message: "what it means".to_owned(),
        remedy: "what to do".to_owned(),
        kubelet: "<said>\nby a kubelet".to_owned(),
        pods: 2,
        pod: "order-1".to_owned(),
        restarts: 4,
    }
}

/// Returns the workload with this failure, as that of its first language if it is counted.
pub fn failing(mut workload: WorkloadRow, failure: FailureRow) -> WorkloadRow {
    if failure.is_counted {
        workload.failing = failure.pods;
        workload.languages[0].pods.failing = failure.pods;
    }
    workload.failures.push(failure);
    workload
}

/// Returns a report about workloads.
pub fn cluster(name: &str, workloads: Vec<WorkloadRow>) -> ClusterReport {
    ClusterReport {
        cluster: name.to_owned(),
        taken: "2026-07-20T10:00:00Z".parse().expect("a time"),
        incomplete: Vec::new(),
        report: Report { workloads, ..Report::default() },
    }
}
