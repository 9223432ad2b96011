//! Reviews of workloads and namespaces: never rejected, with warnings about what will not be injected.
//!
//! The warnings for a pod go to its controller, which drops them. The warnings for a workload go to the user who
//! applies it.

use serde_json::Value;
use tokio::time::Instant;

use super::answering::{Admission, caught};
use otel_webhook_api::{ANNOTATION_PREFIX, validation::Verdict};
use otel_webhook_inject as inject;
use otel_webhook_inject::{
    Finding, Outcome,
    language::{self, LANGUAGES, Language},
    mistakes, nearly,
    shown::shown,
    template::{Around, Workload},
};
use otel_webhook_review::{
    AdmissionResponse, LONGEST_WARNING, MalformedReview, Panicked,
    envelope::{self, Envelope},
};
use otel_webhook_store::cluster;

impl Admission {
    /// Responds with warnings about the pods that a workload will create.
    ///
    /// # Errors
    /// If `body` is not a review: without its uid there can be no response.
    pub async fn validate_workload(
        &self,
        body: &[u8],
        deadline: Instant,
    ) -> Result<Vec<u8>, MalformedReview> {
        let envelope = match Envelope::<Value>::parse(body) {
            Ok(envelope) => envelope,
            // An object that cannot be read is allowed, too.
            Err(MalformedReview::NotAReview(problem)) => {
                let uid = envelope::uid(body)?;
                let warning = format!("otel-webhook: the object cannot be read: {problem}");
                return Ok(AdmissionResponse::allowed(&uid, Some(&warning)).write());
            }
            Err(malformed) => return Err(malformed),
        };
        let uid = envelope.uid.clone();
        let about = envelope.object.as_ref().map(title).unwrap_or_default();
        let Ok(verdict) = self.advise(envelope, deadline).await else {
            tracing::error!("the check of a workload panicked; it is allowed without warnings");
            let warning = "otel-webhook: internal error; the workload was not checked";
            return Ok(AdmissionResponse::allowed(&uid, Some(warning)).write());
        };
        let warnings = verdict.warnings.iter().map(|warning| line(&about, &warning.message));
        Ok(AdmissionResponse::allowed(&uid, None).warning(warnings).write())
    }

    async fn advise(&self, envelope: Envelope<'_, Value>, deadline: Instant) -> Result<Verdict, Panicked> {
        let Envelope { namespace, operation, sub_resource, object, .. } = envelope;
        let Some(mut object) = object.filter(Value::is_object) else { return Ok(Verdict::default()) };
        let is_change = ["CREATE", "UPDATE"].contains(&&*operation) && sub_resource.is_empty();
        if !is_change {
            return Ok(Verdict::default());
        }
        let snapshot = self.store.snapshot();
        let patience = cluster::deadline().min(deadline);
        let learned = self.unknown_namespace(&snapshot.catalogue, &namespace, patience).await;
        let around = Around {
            namespace: &namespace,
            catalogue: learned.as_ref().unwrap_or(&snapshot.catalogue),
            settings: &self.settings,
            owners: &snapshot.owners,
        };
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let verdict = caught(|| advise(&mut object, &api_version, &kind, &around, self.preview_warnings))?;
        Ok(verdict.unwrap_or_default())
    }
}

/// Returns the warnings for a workload or a namespace. None if the object is neither, or is owned by another
/// workload, which is checked instead.
pub fn advise(
    object: &mut Value,
    api_version: &str,
    kind: &str,
    around: &Around<'_>,
    preview: bool,
) -> Option<Verdict> {
    let metadata = &object["metadata"];
    if is_made(kind, metadata) || !metadata["deletionTimestamp"].is_null() {
        return None;
    }
    let mut verdict = Verdict::default();
    for mistake in mistakes::of(object, api_version, kind) {
        verdict.warn(mistake.fault.code(), mistake.field.clone(), mistake.to_string());
    }
    if api_version == "v1" && kind == "Namespace" {
        return Some(verdict);
    }
    let workload = Workload::of(object, api_version, kind)?;
    check_selectors(&mut verdict, &workload, around);
    match workload.outcome(around) {
        Ok(outcome) => {
            for mistake in nearly::selected(&workload, around, &outcome.findings) {
                verdict.warn(mistake.fault.code(), mistake.field.clone(), mistake.to_string());
            }
            tell(&mut verdict, &outcome, &workload, preview);
        }
        Err(problem) => {
            let message = format!("the pod of this {kind} cannot be read: {problem}");
            verdict.warn("unreadable", workload.path("spec"), message);
        }
    }
    Some(verdict)
}

/// Returns a warning with the object, if it is not truncated for it: the remedy comes last.
fn line(about: &str, message: &str) -> String {
    let named = format!("otel-webhook: {about}: {message}");
    if named.len() <= LONGEST_WARNING { named } else { format!("otel-webhook: {message}") }
}

/// Returns kind and name: kubectl prints warnings about several objects without the object.
fn title(object: &Value) -> String {
    let text = |value: &Value| shown(value.as_str().unwrap_or_default()).to_string();
    let name = match text(&object["metadata"]["name"]) {
        name if name.is_empty() => text(&object["metadata"]["generateName"]),
        name => name,
    };
    format!("{} {name}", text(&object["kind"]))
}

/// Returns whether a controller created the object, so that no user sees its warnings.
fn is_made(kind: &str, metadata: &Value) -> bool {
    let owners = metadata["ownerReferences"].as_array();
    ["ReplicaSet", "Job", "Pod"].contains(&kind)
        && owners.is_some_and(|owners| owners.iter().any(|owner| owner["controller"] == true))
}

/// Returns the path of what opts in to a language: an annotation, or the label that the pod has in its place.
fn opt_in(metadata: &str, key: &str, is_label: bool) -> String {
    let list = if is_label { "labels" } else { "annotations" };
    format!("{metadata}.{list}[{ANNOTATION_PREFIX}{key}]")
}

fn check_selectors(verdict: &mut Verdict, workload: &Workload<'_>, around: &Around<'_>) {
    let named = workload.view(around, |input| {
        let unselected = inject::unselected(&input).into_iter();
        unselected.map(|(language, name)| (language, name.to_string())).collect::<Vec<_>>()
    });
    // There is a separate warning for a pod that cannot be read.
    for (language, name) in named.unwrap_or_default() {
        let message = format!(
            "{}: Instrumentation \"{name}\" is used, since it is named, but its selector does not match \
             the labels of the pod",
            language.name
        );
        verdict.warn("selector-mismatch", field(workload, language), message);
    }
}

fn field(workload: &Workload<'_>, language: &Language) -> String {
    opt_in(&workload.path("metadata"), language.inject, workload.has_label(language.inject))
}

/// Adds the warnings of the decision, and the preview.
fn tell(verdict: &mut Verdict, outcome: &Outcome, workload: &Workload<'_>, preview: bool) {
    for warning in outcome.all_warnings() {
        let language = language::named(warning.finding.language);
        let field = language.map(|language| field(workload, language)).unwrap_or_default();
        verdict.warn(warning.code(), field, warning.to_string());
    }
    for language in LANGUAGES.into_iter().filter(|_| preview) {
        let injected = || {
            let own = outcome.findings.iter().filter(|finding| finding.language == language.name);
            own.filter(|finding| finding.reason.is_injected())
        };
        if let Some(used) = injected().find_map(|finding| finding.instrumentation.as_ref()) {
            // Several agents have the same targets.
            let first = injected().next().and_then(|finding| finding.agent.as_deref());
            let of_first = injected().filter(|finding| finding.agent.as_deref() == first);
            let containers: Vec<_> = of_first.filter_map(|finding| finding.container.as_deref()).collect();
            let mut names: Vec<_> = injected().map(Finding::name).collect();
            names.dedup();
            let message =
                format!("will be injected: {} from {used} into {}", names.join(", "), containers.join(", "));
            verdict.warn("preview", field(workload, language), message);
        }
    }
}

#[cfg(test)]
mod tests;
