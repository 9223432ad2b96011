//! Checks the webhook configurations.

use super::result::{CheckResult, Code};
use crate::registration::{Hook, MUTATING, Registration, VALIDATING};
use crate::server::Endpoint;
use crate::subject::Subject;

impl Registration {
    /// Returns the results for this webhook's configurations.
    pub fn results(&self) -> Vec<CheckResult> {
        let mut results = Vec::new();
        for name in &self.names {
            let of_name =
                |kind| self.ours.iter().any(|hook| hook.configuration == *name && hook.kind == kind);
            if !of_name(MUTATING) && !of_name(VALIDATING) {
                let about = Subject::new(MUTATING, "", name);
                let advice = "install the webhook, or set the name by --webhook-configuration";
                let result = CheckResult::new(Code::ConfigurationMissing, "not found, or has no webhooks");
                results.push(result.about(about).advise(advice));
            }
        }
        if self.ours.is_empty() {
            return results;
        }
        results.extend(self.pod_results());
        results.extend(self.instrumentation_result());
        results.extend(self.ours.iter().filter_map(unknown_path));
        results
    }

    fn pod_results(&self) -> Vec<CheckResult> {
        let mut results = Vec::new();
        for hook in self.pods() {
            let narrowed = if hook.has_conditions { ", if its match conditions match" } else { "" };
            let message = format!("sends new pods to {}{narrowed}", hook.backend);
            results.push(CheckResult::new(Code::PodsRegistered, message).about(hook.subject()));
            if hook.fails_closed {
                let message = format!("{}: pods are rejected while the webhook is unavailable", hook.name);
                let result = CheckResult::new(Code::PodsHeldBack, message).about(hook.subject());
                results.push(result.advise("set failurePolicy: Ignore"));
            }
        }
        if results.is_empty() {
            let message = format!("no webhook of {} selects new pods", self.names.join(", "));
            let advice = "register the webhook for pods (operation CREATE)";
            results.push(CheckResult::new(Code::PodsNotRegistered, message).advise(advice));
        }
        results
    }

    fn instrumentation_result(&self) -> Option<CheckResult> {
        let sent = |kind| {
            let mut hooks = self.ours.iter().filter(|hook| hook.kind == kind);
            hooks.any(|hook| hook.sends("opentelemetry.io", "instrumentations"))
        };
        let missing = match (sent(MUTATING), sent(VALIDATING)) {
            (true, true) => return None,
            (true, false) => "validation, so that errors are not rejected",
            (false, true) => "defaulting",
            (false, false) => "defaulting and validation, so that errors are not rejected",
        };
        let message = format!("Instrumentations are stored without {missing}");
        let result = CheckResult::new(Code::InstrumentationsNotRegistered, message);
        Some(result.advise("if this is not intended, register the webhooks for Instrumentations as well"))
    }
}

fn unknown_path(hook: &Hook) -> Option<CheckResult> {
    let path = hook.backend.path();
    let paths = Endpoint::ALL.map(Endpoint::path);
    (!paths.contains(&&*path)).then(|| {
        let message = format!("{}: unknown path {path}", hook.name);
        let result = CheckResult::new(Code::PathUnknown, message).about(hook.subject());
        result.advise(format!("valid paths: {}", paths.join(", ")))
    })
}

#[cfg(test)]
pub mod tests;
