//! The product's own mark on a pod that it injected, for people to read.
//!
//! It is never on the operator's prefix, and nothing is decided by it: a
//! stamp is copied along with other annotations all too easily.

use serde_json::{Value, json};

use super::job::Finding;

/// Label of injected pods, to select them by.
pub const LABEL: &str = "otel-webhook/injected";

/// Annotation that says what was injected, what was not, and why.
pub const STATUS: &str = "otel-webhook/status";

type Entries = Vec<(&'static str, String)>;

/// Labels and annotations of a pod of which these are the findings.
pub fn of(findings: &[Finding], wanted: bool) -> (Entries, Entries) {
    if !wanted {
        return (Vec::new(), Vec::new());
    }
    let status = json!(findings.iter().map(entry).collect::<Vec<_>>());
    (vec![(LABEL, "true".to_owned())], vec![(STATUS, status.to_string())])
}

fn entry(finding: &Finding) -> Value {
    let mut entry = json!({"language": finding.language, "outcome": finding.reason.code()});
    if let Some(container) = &finding.container {
        entry["container"] = json!(container);
    }
    if let Some(name) = &finding.instrumentation {
        entry["instrumentation"] = json!(name.to_string());
    }
    if !finding.reason.is_injected() {
        entry["reason"] = json!(finding.reason.to_string());
    }
    if !finding.notes.is_empty() {
        entry["notes"] = json!(finding.notes.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    entry
}
