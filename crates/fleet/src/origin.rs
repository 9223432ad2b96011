//! The configuration with which a language was injected: one hash, also if it stands for several agents of
//! `spec.agents` in the same pod.

use otel_webhook_inject::{Finding, Used, compiled::joined, reason::Reason};
use serde_json::Value;

/// Returns the entries of the annotation `otel-webhook/status` for an injected language.
pub fn injected<'e>(entries: &'e [Value], language: &'e str) -> impl Iterator<Item = &'e Value> + Clone {
    entries.iter().filter(move |entry| entry["language"] == language && entry["outcome"] == "Injected")
}

/// Returns the hash of a language, of all its entries.
pub fn stamped(entries: &[Value], language: &str) -> Option<Box<str>> {
    let hashes = injected(entries, language).map(|entry| entry["hash"].as_str());
    hashes.collect::<Option<Vec<_>>>()?.into_iter().map(Box::from).reduce(|one, other| joined(&one, &other))
}

/// Returns the Instrumentation of a language that is injected, or would be if nothing were paused, with the hash of all
/// its agents.
pub fn of_findings<'f>(findings: impl IntoIterator<Item = &'f Finding>, language: &str) -> Option<Used> {
    let mut agents = Vec::new();
    let mut found: Option<Used> = None;
    for finding in findings {
        let is_meant = finding.reason.is_injected() || matches!(finding.reason, Reason::Paused { .. });
        let is_own = finding.language == language && is_meant;
        let Some(used) = finding.instrumentation.as_ref().filter(|_| is_own) else { continue };
        if agents.contains(&&finding.agent) {
            continue;
        }
        agents.push(&finding.agent);
        match &mut found {
            None => found = Some(used.clone()),
            Some(found) => found.hash = joined(&found.hash, &used.hash),
        }
    }
    found
}
