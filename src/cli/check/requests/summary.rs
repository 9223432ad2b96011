//! What all workloads come to: pods without an agent by cause, and versions of agents.

use std::collections::BTreeMap;

use serde_json::json;

use super::{
    super::{
        result::{CheckResult, Code},
        survey::{Next, Survey, Surveyed},
    },
    running,
    workload::{decided, injected, is_unreviewed},
};
use crate::registration::Registration;

/// Returns how many pods opt in and run without an agent, by the cause; none where some of them are not known.
pub fn without_agent(survey: &Survey, registration: &Registration) -> Option<CheckResult> {
    let unread = &survey.unread;
    let is_unsure = survey.workloads.iter().any(|workload| !workload.unsure.is_empty());
    if is_unsure || unread.namespaces || unread.flags.is_some() || survey.is_registration_unread {
        return None;
    }
    let mut causes: BTreeMap<&'static str, usize> = BTreeMap::new();
    let workloads = survey.workloads.iter().filter(|workload| !running::is_short_lived(workload));
    for workload in workloads {
        let is_unregistered = registration.pods().chain(&registration.others).next().is_none();
        let to_come = if is_unregistered {
            Code::PodsNotRegistered
        } else if is_unreviewed(workload, survey, registration) {
            Code::NotReviewed
        } else {
            Code::RunningWithout
        };
        for (cause, count) in of_workload(workload, to_come) {
            *causes.entry(cause).or_default() += count;
        }
    }
    let all: usize = causes.values().sum();
    if all == 0 {
        return None;
    }
    causes.retain(|_, count| *count > 0);
    let listed: Vec<_> = causes.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
    let noun = if all == 1 { "pod opts in and runs" } else { "pods opt in and run" };
    let message = format!("{all} {noun} without an agent, by cause: {}", listed.join(", "));
    let result = CheckResult::new(Code::PodsWithoutAgent, message);
    Some(CheckResult { details: Some(json!(causes)), ..result.advise("see the findings of the workloads") })
}

/// Returns the causes for which pods of a workload lack an agent: each pod once, for its first language.
fn of_workload(workload: &Surveyed, to_come: Code) -> Vec<(&'static str, usize)> {
    let pods = workload.pods.count;
    if matches!(workload.next, Next::Unreadable(_)) {
        return vec![("Unreadable", pods)];
    }
    let trouble = decided(workload).iter().find(|finding| finding.reason.is_trouble());
    let lacking = |language: &str| running::lacking(workload, language);
    let injectable = injected(workload).into_iter().map(lacking).max().unwrap_or_default();
    let by_reason = trouble.map(|finding| (finding.reason.code(), lacking(finding.language)));
    let by_creation = (to_come.name(), injectable);
    let mistaken =
        decided(workload).is_empty() && workload.unsure.is_empty() && !workload.mistakes.is_empty();
    let injected = workload.pods.agents.keys().map(|agent| workload.pods.with(agent.language)).max();
    let by_mistake =
        mistaken.then_some((Code::WithoutEffect.name(), pods.saturating_sub(injected.unwrap_or_default())));
    let all = by_reason.into_iter().chain([by_creation]).chain(by_mistake);
    all.filter(|(_, count)| *count > 0).collect()
}

/// Returns the versions of each language's agents that run, and those that new pods get.
pub fn versions(survey: &Survey) -> Vec<CheckResult> {
    // The default images are flags.
    if survey.unread.flags.is_some() {
        return Vec::new();
    }
    let mut now: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut next: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for workload in &survey.workloads {
        for (agent, count) in &workload.pods.agents {
            *now.entry((agent.language, agent.version())).or_default() += count;
        }
        for agent in &workload.agents {
            *next.entry((agent.language, agent.version())).or_default() += 1;
        }
    }
    let mut languages: Vec<&str> = now.keys().chain(next.keys()).map(|(language, _)| *language).collect();
    languages.sort_unstable();
    languages.dedup();
    // Languages without an image have no version.
    languages.retain(|language| {
        now.keys().chain(next.keys()).any(|(of, version)| of == language && !version.is_empty())
    });
    languages.into_iter().map(|language| of_language(language, &now, &next)).collect()
}

fn of_language(
    language: &str,
    now: &BTreeMap<(&str, &str), usize>,
    next: &BTreeMap<(&str, &str), usize>,
) -> CheckResult {
    let of = |all: &BTreeMap<(&str, &str), usize>| -> BTreeMap<String, usize> {
        let own = all.iter().filter(|((of, _), _)| *of == language);
        own.map(|((_, version), count)| ((*version).to_owned(), *count)).collect()
    };
    let (now, next) = (of(now), of(next));
    let list = |all: &BTreeMap<String, usize>, noun: &str| {
        let listed: Vec<_> = all
            .iter()
            .map(|(version, count)| {
                format!("{version} ({count} {noun}{})", if *count == 1 { "" } else { "s" })
            })
            .collect();
        if listed.is_empty() { "none".to_owned() } else { listed.join(", ") }
    };
    let message = format!("{language} now: {}; in new pods: {}", list(&now, "pod"), list(&next, "workload"));
    let details = json!({"language": language, "now": now, "next": next});
    CheckResult { details: Some(details), ..CheckResult::new(Code::AgentVersions, message) }
}
