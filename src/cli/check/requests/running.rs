//! Pods that run without an agent, or with another one than new pods get.

use super::{
    super::{
        result::{CheckResult, Code},
        survey::{Next, Surveyed},
    },
    remedy,
    workload::injected,
};
use otel_webhook_fleet::injected::Agent;
use otel_webhook_inject::{Finding, language::LANGUAGES, reason::Reason};

/// Kinds of workloads with short-lived pods.
const SHORT_LIVED: [&str; 2] = ["Job", "CronJob"];

/// Returns whether the next pods come soon.
pub fn is_short_lived(workload: &Surveyed) -> bool {
    SHORT_LIVED.contains(&&*workload.subject.kind)
}

/// Returns the number of pods that lack a language.
pub fn lacking(workload: &Surveyed, language: &str) -> usize {
    let pods = &workload.pods;
    pods.count - pods.with(language).min(pods.count)
}

/// Returns the result for pods without a language that new pods get.
pub fn without(workload: &Surveyed) -> Option<CheckResult> {
    let lacking: Vec<_> = injected(workload)
        .into_iter()
        .map(|name| (name, lacking(workload, name)))
        .filter(|one| one.1 > 0)
        .collect();
    let most = lacking.iter().map(|(_, count)| *count).max()?;
    let names: Vec<_> = lacking.iter().map(|(name, _)| *name).collect();
    let mut causes: Vec<String> = Vec::new();
    for (language, count) in &lacking {
        for (cause, count) in then(workload, language, *count) {
            let said = format!("{count} {cause}");
            if !causes.contains(&said) {
                causes.push(said);
            }
        }
    }
    let message = format!(
        "{most} of {} pods run without {} ({}); new pods are injected",
        workload.pods.count,
        names.join(", "),
        causes.join(", "),
    );
    let result = CheckResult::new(Code::RunningWithout, message).about(workload.subject.clone());
    Some(remedy::renew(result, workload))
}

/// Returns why pods lack a language: what their stamps say of their creation.
fn then(workload: &Surveyed, language: &str, lacking: usize) -> Vec<(String, usize)> {
    let skipped = workload.pods.skipped.iter().filter(|((of, _), _)| *of == language);
    let mut causes: Vec<_> =
        skipped.map(|((_, code), count)| (format!("skipped at creation: {code}"), *count)).collect();
    let stamped: usize = causes.iter().map(|(_, count)| count).sum();
    if lacking > stamped {
        causes.push(("not reviewed at creation".to_owned(), lacking - stamped));
    }
    causes
}

/// Returns the result for pods with another version or configuration of an agent than new pods get.
pub fn outdated(workload: &Surveyed) -> Option<CheckResult> {
    let mut said = Vec::new();
    for language in LANGUAGES.iter().map(|row| row.name) {
        let next = workload.agents.iter().find(|agent| agent.language == language);
        if next.is_none() && !is_none_certain(workload) {
            continue;
        }
        let own = workload.pods.agents_of(language);
        let outdated: Vec<_> = own.filter(|(agent, _)| agent.is_outdated(next)).collect();
        let count: usize = outdated.iter().map(|(_, count)| count).sum();
        if count > 0 {
            let of = format!("{count} of {} pods", workload.pods.count);
            said.push(match next {
                Some(next) => format!("{of} {}", difference(&outdated, next)),
                None => format!("{of} run with {language}; new pods get none"),
            });
        }
    }
    if said.is_empty() {
        return None;
    }
    let result = CheckResult::new(Code::RunningOutdated, said.join("; ")).about(workload.subject.clone());
    Some(remedy::renew(result, workload))
}

/// Returns whether new pods certainly get no agent of the other languages. Of an injected pod that shows the template
/// of its workload this is not known.
fn is_none_certain(workload: &Surveyed) -> bool {
    let Next::Decided(findings) = &workload.next else { return false };
    let shows_itself = |finding: &Finding| matches!(finding.reason, Reason::AlreadyInjected { .. });
    workload.unsure.is_empty() && !findings.iter().any(shows_itself)
}

fn difference(outdated: &[(&Agent, usize)], next: &Agent) -> String {
    let mut versions: Vec<_> = outdated.iter().map(|(agent, _)| agent.version()).collect();
    versions.sort_unstable();
    versions.dedup();
    versions.retain(|version| *version != next.version());
    let used = next.origin().instrumentation;
    let mut others: Vec<_> = outdated.iter().map(|(agent, _)| agent.origin().instrumentation).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|name| !name.is_empty() && *name != used);
    if versions.is_empty() && !others.is_empty() {
        return format!(
            "were injected with {} by {}; new pods use {used}",
            next.language,
            others.join(" and "),
        );
    }
    if versions.is_empty() {
        return format!(
            "were injected with {} as its Instrumentation was configured before; new pods get the present \
             configuration",
            next.language
        );
    }
    format!("run with {} {}; new pods get {}", next.language, versions.join(" and "), next.version())
}

#[cfg(test)]
mod tests;
