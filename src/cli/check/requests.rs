//! Checks which workloads opt in but are not injected, and which pods run without the injection.

mod remedy;
mod running;
mod summary;
mod workload;

use super::{
    result::{CheckResult, Code},
    survey::{Next, Survey, Surveyed},
};
use crate::registration::Registration;
use crate::subject::Subject;
use crate::unread::Unsure;
use otel_webhook_api::ANNOTATION_PREFIX;
use otel_webhook_fleet::report::FailureRow;
use otel_webhook_inject as inject;
use otel_webhook_inject::{mistakes::Mistake, reason::Reason};
pub use workload::reviewers;
use workload::{decided, injected, is_unreviewed};

/// Reasons that are caused by the namespace and not by the pod.
const OF_NAMESPACES: [&str; 11] = [
    "LanguageDisabled",
    "NoInstrumentation",
    "AmbiguousInstrumentation",
    "InstrumentationNotFound",
    "InstrumentationNotGranted",
    "CrossNamespaceDenied",
    "DefaultInstrumentationNotFound",
    "InstrumentationInvalid",
    "ContainerListMissing",
    "PodSecurity",
    "PrivilegedInitContainer",
];

/// With one of these, not all that opt in are injected as they should be.
const SPOILS: [Code; 7] = [
    Code::WithoutEffect,
    Code::RequestInVain,
    Code::NotReviewed,
    Code::RunningWithout,
    Code::RunningOutdated,
    Code::PodsFailing,
    Code::PodsWithoutAgent,
];

/// Returns the results for namespaces and workloads that opt in.
pub fn results(survey: &Survey, registration: &Registration) -> Vec<CheckResult> {
    let mut results: Vec<CheckResult> = survey.unusable.iter().map(unusable).collect();
    results.extend(survey.mistakes.iter().map(|(subject, mistake)| without_effect(subject, mistake)));
    let of_namespaces: Vec<_> = survey.asking.iter().flat_map(in_vain_for_all).collect();
    let (mut asking, mut in_vain) = (0, 0);
    let mut of_workloads = Vec::new();
    for workload in &survey.workloads {
        let own = of_workload(workload, &of_namespaces);
        asking += usize::from(asks(workload));
        in_vain += usize::from(is_in_vain(workload));
        of_workloads.extend(own);
        let mistakes = workload.mistakes.iter();
        of_workloads.extend(mistakes.map(|mistake| without_effect(&workload.subject, mistake)));
        of_workloads.extend(unknown(workload));
        of_workloads.extend(warned(workload));
        of_workloads.extend(failing(workload));
        of_workloads.extend(not_reviewed(workload, survey, registration));
        if running::is_short_lived(workload) {
            continue;
        }
        let hooks = reviewers(workload, survey, registration);
        of_workloads.extend(running::without(workload).filter(|_| !hooks.is_empty()));
        // Only the present agents of this webhook are known.
        let is_known = survey.unread.flags.is_none();
        let is_ours = is_known && hooks.iter().any(|hook| registration.names.contains(&hook.configuration));
        // While injection is paused, a restart would remove the agents.
        let is_paused = decided(workload).iter().any(is_paused);
        of_workloads.extend(running::outdated(workload).filter(|_| is_ours && !is_paused));
    }
    results.extend(of_namespaces);
    results.extend(of_workloads);
    results.extend(summary::without_agent(survey, registration));
    let is_amiss = |result: &CheckResult| SPOILS.contains(&result.code);
    let is_certain = survey.not_told.is_empty() && survey.unread.flags.is_none();
    let unsure = survey.workloads.iter().filter(|workload| !workload.unsure.is_empty()).count();
    if in_vain == 0 && unsure == 0 && is_certain && !results.iter().any(is_amiss) {
        let all = survey.workloads.len();
        let message =
            format!("{asking} of {all} workloads opt in, and all of their pods run with the present agents");
        results.push(CheckResult::new(Code::RequestsMet, message));
    }
    results.extend(summary::versions(survey));
    results
}

fn unusable((subject, problem): &(Subject, String)) -> CheckResult {
    let result = CheckResult::new(Code::InstrumentationUnusable, format!("cannot be used: {problem}"));
    result.about(subject.clone()).advise("fix it; otel-webhook validate lists all errors")
}

fn without_effect(subject: &Subject, mistake: &Mistake) -> CheckResult {
    let result = CheckResult::new(Code::WithoutEffect, &*mistake.message).about(subject.clone());
    let field = Some(mistake.field.clone());
    CheckResult { reason: Some(mistake.fault.code()), field, ..result.advise(&*mistake.remedy) }
}

fn in_vain(subject: &Subject, finding: &inject::Finding, field: Option<String>) -> CheckResult {
    let said = CheckResult::new(Code::RequestInVain, finding.to_string()).about(subject.clone());
    let advice = finding.reason.remedy().map(str::to_owned);
    CheckResult { reason: Some(finding.reason.code()), field, advice, ..said }
}

/// Returns the path of the annotation that opts in to a language.
fn annotation(metadata: &str, language: &str) -> Option<String> {
    let row = inject::language::named(language)?;
    Some(format!("{metadata}.annotations[{ANNOTATION_PREFIX}{}]", row.inject))
}

fn in_vain_for_all((name, findings): &(String, Vec<inject::Finding>)) -> Vec<CheckResult> {
    let subject = Subject::new("Namespace", "", name);
    let own = findings.iter().filter(|finding| OF_NAMESPACES.contains(&finding.reason.code()));
    own.map(|finding| in_vain(&subject, finding, annotation("metadata", finding.language))).collect()
}

fn is_paused(finding: &inject::Finding) -> bool {
    matches!(finding.reason, Reason::Paused { .. })
}

fn asks(workload: &Surveyed) -> bool {
    decided(workload).iter().any(|finding| finding.reason.code() != "SwitchedOff")
}

fn is_in_vain(workload: &Surveyed) -> bool {
    matches!(workload.next, Next::Unreadable(_))
        || decided(workload).iter().any(|one| one.reason.is_trouble())
}

/// Returns the skipped languages of a workload. Results for its whole namespace are not repeated.
fn of_workload(workload: &Surveyed, of_namespaces: &[CheckResult]) -> Vec<CheckResult> {
    if let Next::Unreadable(problem) = &workload.next {
        let message = format!("the pod cannot be read: {problem}");
        let result = CheckResult::new(Code::RequestInVain, message).about(workload.subject.clone());
        return vec![CheckResult { reason: Some("Unreadable"), ..result }];
    }
    let is_said = |finding: &inject::Finding| {
        let of_namespace = |said: &&CheckResult| {
            let subject = said.subject.as_ref();
            subject.is_some_and(|subject| subject.name == workload.subject.namespace)
                && said.reason == Some(finding.reason.code())
                && said.message == finding.to_string()
        };
        !workload.own.contains(&finding.language) && of_namespaces.iter().any(|said| of_namespace(&said))
    };
    let troubles =
        decided(workload).iter().filter(|finding| finding.reason.is_trouble() && !is_said(finding));
    // What pauses is reported once.
    let troubles = troubles.filter(|finding| !is_paused(finding));
    let field = |language: &str| {
        let metadata = remedy::pod_path(&workload.subject.kind, "metadata");
        workload.own.contains(&language).then(|| annotation(&metadata, language)).flatten()
    };
    troubles.map(|finding| in_vain(&workload.subject, finding, field(finding.language))).collect()
}

/// Returns the languages with an unknown result.
fn unknown(workload: &Surveyed) -> impl Iterator<Item = CheckResult> {
    let unknown = |unsure: &Unsure| {
        let advice = "ask somebody who may read them to run otel-webhook check";
        CheckResult::new(Code::NotReadable, unsure.to_string()).about(workload.subject.clone()).advise(advice)
    };
    workload.unsure.iter().map(unknown)
}

/// Returns the warnings about injections.
fn warned(workload: &Surveyed) -> impl Iterator<Item = CheckResult> {
    let noted = inject::told(decided(workload)).into_iter().filter(|warning| warning.note.is_some());
    noted.map(|warning| {
        let result = CheckResult::new(Code::InjectedWithWarning, warning.to_string());
        CheckResult { reason: Some(warning.code()), ..result.about(workload.subject.clone()) }
    })
}

/// Returns what keeps running pods from starting or staying, as `status` counts it.
fn failing(workload: &Surveyed) -> impl Iterator<Item = CheckResult> {
    workload.failures.iter().filter(|row| row.is_counted).map(|row| {
        let FailureRow { container, code, message, remedy, kubelet, pods, .. } = row;
        let count = workload.pods.count;
        let said = if kubelet.is_empty() { String::new() } else { format!(" ({kubelet})") };
        let message =
            format!("{pods} of {count} pods fail: {code} of container {container}: {message}{said}");
        let result = CheckResult::new(Code::PodsFailing, message).about(workload.subject.clone());
        CheckResult { reason: Some(code), ..result.advise(remedy.as_str()) }
    })
}

fn not_reviewed(workload: &Surveyed, survey: &Survey, registration: &Registration) -> Option<CheckResult> {
    if !is_unreviewed(workload, survey, registration) {
        return None;
    }
    let exclusion = remedy::exclusion(workload, survey, registration)?;
    let would = injected(workload).join(", ");
    let message = format!("opts in to {would}, but {}", exclusion.cause);
    let result = CheckResult::new(Code::NotReviewed, message).about(workload.subject.clone());
    Some(result.advise(exclusion.advice))
}

#[cfg(test)]
mod tests;
