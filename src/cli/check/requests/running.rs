//! Pods that run without an agent, or with another one than new pods get.

use super::{
    super::{
        agents::Agent,
        result::{CheckResult, Code},
        survey::Surveyed,
    },
    remedy,
    workload::injected,
};

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
    for next in &workload.agents {
        let own = workload.pods.agents.iter().filter(|(agent, _)| agent.language == next.language);
        let outdated: Vec<(&Agent, usize)> =
            own.filter(|(agent, _)| agent.is_outdated(next)).map(|(agent, count)| (agent, *count)).collect();
        let count: usize = outdated.iter().map(|(_, count)| count).sum();
        if count > 0 {
            said.push(format!("{count} of {} pods {}", workload.pods.count, difference(&outdated, next)));
        }
    }
    if said.is_empty() {
        return None;
    }
    let result = CheckResult::new(Code::RunningOutdated, said.join("; ")).about(workload.subject.clone());
    Some(remedy::renew(result, workload))
}

fn difference(outdated: &[(&Agent, usize)], next: &Agent) -> String {
    let mut versions: Vec<_> = outdated.iter().map(|(agent, _)| agent.version()).collect();
    versions.sort_unstable();
    versions.dedup();
    versions.retain(|version| *version != next.version());
    if versions.is_empty() {
        return format!(
            "were injected with {} as its Instrumentation was configured before; new pods get the present \
             configuration",
            next.language
        );
    }
    format!("run with {} {}; new pods get {}", next.language, versions.join(" and "), next.version())
}
