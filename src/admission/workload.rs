//! Reviews of workloads: never rejected, with warnings about what will not be injected.
//!
//! The warnings for a pod go to its controller, which drops them. The warnings for a workload go to the user who
//! applies it.

use serde_json::Value;
use tokio::time::Instant;

use super::answering::{Admission, caught};
use crate::store::cluster;
use otel_webhook_api::{
    ANNOTATION_PREFIX,
    validation::{Verdict, suggestion},
};
use otel_webhook_inject as inject;
use otel_webhook_inject::{
    Outcome,
    language::{self, LANGUAGES, Language},
    template::{Around, Workload},
};
use otel_webhook_review::{
    AdmissionResponse, MalformedReview, Panicked,
    envelope::{self, Envelope},
};

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
        let Ok(verdict) = self.advise(envelope, deadline).await else {
            tracing::error!("the check of a workload panicked; it is allowed without warnings");
            let warning = "otel-webhook: internal error; the workload was not checked";
            return Ok(AdmissionResponse::allowed(&uid, Some(warning)).write());
        };
        let warnings = verdict.warnings.iter().map(|warning| format!("otel-webhook: {}", warning.message));
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

/// Returns the warnings for a workload. None if the object is not a workload, or is owned by another workload,
/// which is checked instead.
pub fn advise(
    object: &mut Value,
    api_version: &str,
    kind: &str,
    around: &Around<'_>,
    preview: bool,
) -> Option<Verdict> {
    let metadata = object["metadata"].clone();
    if is_made(kind, &metadata) || !metadata["deletionTimestamp"].is_null() {
        return None;
    }
    // A CronJob has a job template that contains the pod template: only the latter applies to pods.
    let of_jobs = object["spec"]["jobTemplate"]["metadata"].clone();
    let workload = Workload::of(object, api_version, kind)?;
    let mut verdict = Verdict::default();
    if workload.template.is_some() {
        for (metadata, path, whose) in
            [(&metadata, "metadata", kind), (&of_jobs, "spec.jobTemplate.metadata", "job template")]
        {
            check_keys(&mut verdict, metadata, path);
            check_place(&mut verdict, metadata, path, whose, &workload);
        }
    }
    check_keys(&mut verdict, &workload.pod["metadata"], &workload.path("metadata"));
    check_selectors(&mut verdict, &workload, around);
    match workload.outcome(around) {
        Ok(outcome) => tell(&mut verdict, &outcome, &workload, preview),
        Err(problem) => {
            let message = format!("the pod of this {kind} cannot be read: {problem}");
            verdict.warn("unreadable", workload.path("spec"), message);
        }
    }
    Some(verdict)
}

/// Returns whether a controller created the object, so that no user sees its warnings.
fn is_made(kind: &str, metadata: &Value) -> bool {
    let owners = metadata["ownerReferences"].as_array();
    ["ReplicaSet", "Job", "Pod"].contains(&kind)
        && owners.is_some_and(|owners| owners.iter().any(|owner| owner["controller"] == true))
}

/// Returns the annotations of an object's metadata with the prefix, without the prefix.
fn ours(metadata: &Value) -> impl Iterator<Item = &str> {
    let all = metadata["annotations"].as_object().into_iter().flatten();
    all.filter_map(|(key, _)| key.strip_prefix(ANNOTATION_PREFIX))
}

fn is_valid(key: &str) -> bool {
    language::keys().any(|valid| valid == key)
}

fn annotation(metadata: &str, key: &str) -> String {
    format!("{metadata}.annotations[{ANNOTATION_PREFIX}{key}]")
}

/// How many unknown annotations of an object are reported one by one: each is compared with all valid ones.
const MOST_UNKNOWN: usize = 10;

fn check_keys(verdict: &mut Verdict, metadata: &Value, path: &str) {
    let mut unknown = ours(metadata).filter(|key| !is_valid(key));
    for key in unknown.by_ref().take(MOST_UNKNOWN) {
        let message = if key.starts_with("default-auto-instrumentation-") && key.ends_with("-image") {
            format!("the annotation {ANNOTATION_PREFIX}{key} only has an effect on Instrumentations")
        } else {
            let suggestion = suggestion(key, language::keys());
            format!("unknown annotation {ANNOTATION_PREFIX}{key}{suggestion}")
        };
        verdict.warn("unknown-annotation", annotation(path, key), message);
    }
    let more = unknown.count();
    if more > 0 {
        let message = format!("{more} more unknown annotations with the prefix {ANNOTATION_PREFIX}");
        verdict.warn("unknown-annotation", format!("{path}.annotations"), message);
    }
}

/// Controllers copy the annotations of the template to pods, but not their own.
fn check_place(verdict: &mut Verdict, metadata: &Value, path: &str, whose: &str, workload: &Workload<'_>) {
    let of_template = &workload.pod["metadata"];
    let asks = |key: &&str| LANGUAGES.iter().any(|language| language.inject == *key);
    for key in ours(metadata).filter(asks).filter(|key| ours(of_template).all(|other| other != *key)) {
        let message = format!(
            "the annotation {ANNOTATION_PREFIX}{key} has no effect on the {whose} itself; move it to {}",
            workload.path("metadata.annotations"),
        );
        verdict.warn("annotation-on-workload", annotation(path, key), message);
    }
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
    annotation(&workload.path("metadata"), language.inject)
}

/// Adds the warnings of the decision, and the preview.
fn tell(verdict: &mut Verdict, outcome: &Outcome, workload: &Workload<'_>, preview: bool) {
    for warning in outcome.told() {
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
            let containers: Vec<_> = injected().filter_map(|finding| finding.container.as_deref()).collect();
            let message =
                format!("will be injected: {} from {used} into {}", language.name, containers.join(", "));
            verdict.warn("preview", field(workload, language), message);
        }
    }
}

#[cfg(test)]
mod tests;
