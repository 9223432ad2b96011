//! Checks which workloads opt in but are not injected, and which pods run without the injection.

use super::{
    result::{CheckResult, Code},
    survey::{Next, Survey, Surveyed},
};
use crate::cli::cluster::{
    pods,
    registration::{Hook, Labels, Registration},
    subject::Subject,
    unread::Unsure,
};
use otel_webhook_inject as inject;

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

/// Kinds of workloads with short-lived pods.
const SHORT_LIVED: [&str; 2] = ["Job", "CronJob"];

/// Returns the results for namespaces and workloads that opt in.
pub fn results(survey: &Survey, registration: &Registration) -> Vec<CheckResult> {
    let mut results: Vec<CheckResult> = survey.unusable.iter().map(unusable).collect();
    let of_namespaces: Vec<_> = survey.asking.iter().flat_map(in_vain_for_all).collect();
    let (mut asking, mut in_vain) = (0, 0);
    let mut of_workloads = Vec::new();
    for workload in &survey.workloads {
        let own = of_workload(workload, &of_namespaces);
        asking += usize::from(asks(workload));
        in_vain += usize::from(is_in_vain(workload));
        of_workloads.extend(own);
        of_workloads.extend(unknown(workload));
        of_workloads.extend(warned(workload));
        of_workloads.extend(not_reviewed(workload, survey, registration));
        of_workloads.extend(running_without(workload, survey, registration));
    }
    results.extend(of_namespaces);
    results.extend(of_workloads);
    let is_certain = survey.not_told.is_empty() && survey.unread.flags.is_none();
    let unsure = survey.workloads.iter().filter(|workload| !workload.unsure.is_empty()).count();
    if in_vain == 0 && unsure == 0 && is_certain {
        let all = survey.workloads.len();
        let message = format!("{asking} of {all} workloads opt in, and all of them are injected");
        results.push(CheckResult::new(Code::RequestsMet, message));
    }
    results
}

fn unusable((subject, problem): &(Subject, String)) -> CheckResult {
    let result = CheckResult::new(Code::InstrumentationUnusable, format!("cannot be used: {problem}"));
    result.about(subject.clone()).advise("fix it; otel-webhook validate lists all errors")
}

fn in_vain(subject: &Subject, finding: &inject::Finding, code: Code) -> CheckResult {
    let said = CheckResult::new(code, finding.to_string()).about(subject.clone());
    CheckResult { reason: Some(finding.reason.code()), ..said }
}

fn in_vain_for_all((name, findings): &(String, Vec<inject::Finding>)) -> Vec<CheckResult> {
    let subject = Subject::new("Namespace", "", name);
    let own = findings.iter().filter(|finding| OF_NAMESPACES.contains(&finding.reason.code()));
    own.map(|finding| in_vain(&subject, finding, Code::RequestInVain)).collect()
}

fn decided(workload: &Surveyed) -> &[inject::Finding] {
    match &workload.next {
        Next::Decided(findings) => findings,
        Next::Unreadable(_) | Next::Unknown => &[],
    }
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
    troubles.map(|finding| in_vain(&workload.subject, finding, Code::RequestInVain)).collect()
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

/// Returns the webhooks that select a new pod of a workload, in the order of their calls.
pub fn reviewers<'r>(workload: &Surveyed, survey: &Survey, registration: &'r Registration) -> Vec<&'r Hook> {
    let nothing = Labels::new();
    let namespace = survey.namespaces.get(&workload.subject.namespace).unwrap_or(&nothing);
    registration.reviewers(namespace, &workload.labels, !workload.own.is_empty())
}

/// Returns whether a webhook belongs to this webhook's configurations.
fn is_ours(hook: &Hook, registration: &Registration) -> bool {
    registration.names.contains(&hook.configuration)
}

fn injected(workload: &Surveyed) -> Vec<&'static str> {
    let mut languages: Vec<_> =
        decided(workload).iter().filter(|one| one.reason.is_injected()).map(|one| one.language).collect();
    languages.dedup();
    languages
}

fn not_reviewed(workload: &Surveyed, survey: &Survey, registration: &Registration) -> Option<CheckResult> {
    let would = injected(workload);
    if would.is_empty() || registration.pods().next().is_none() {
        return None;
    }
    if !reviewers(workload, survey, registration).is_empty() {
        return None;
    }
    let names = registration.names.join(", ");
    let message = format!("opts in to {}, but no webhook configuration selects its pods", would.join(", "));
    let nothing = Labels::new();
    let namespace = survey.namespaces.get(&workload.subject.namespace).unwrap_or(&nothing);
    let advice = if registration.pods().any(|hook| hook.selects(namespace, &workload.labels, true)) {
        "annotate the pods: with registration.pods.shape=annotated, the annotation of the namespace is not enough"
            .to_owned()
    } else {
        format!("change the selectors of {names} to include namespace {}", workload.subject.namespace)
    };
    Some(CheckResult::new(Code::NotReviewed, message).about(workload.subject.clone()).advise(advice))
}

fn running_without(workload: &Surveyed, survey: &Survey, registration: &Registration) -> Option<CheckResult> {
    let subject = &workload.subject;
    let ours = reviewers(workload, survey, registration).into_iter().any(|hook| is_ours(hook, registration));
    if !ours || SHORT_LIVED.contains(&&*subject.kind) {
        return None;
    }
    let pods = &workload.pods;
    let lacking: Vec<_> = injected(workload)
        .into_iter()
        .map(|name| (name, pods.count - pods.with(name).min(pods.count)))
        .collect();
    let most = lacking.iter().map(|(_, count)| *count).max().filter(|count| *count > 0)?;
    let names: Vec<_> = lacking.iter().filter(|(_, count)| *count > 0).map(|(name, _)| *name).collect();
    let message = format!(
        "{most} of {} pods were created before, and run without {}; new pods are injected",
        pods.count,
        names.join(", ")
    );
    Some(CheckResult::new(Code::RunningWithout, message).about(subject.clone()).advise(pods::renew(subject)))
}

#[cfg(test)]
mod tests;
