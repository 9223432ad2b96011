//! Reviews of workloads: never refused, and warned of what will not come.
//!
//! A pod's warnings go to its controller, where nobody reads them. Whoever
//! applies the workload still does.

use serde_json::Value;

use super::answering::{Admission, caught};
use crate::store::cluster;
use otel_webhook_api::{
    ANNOTATION_PREFIX,
    validation::{Verdict, suggestion},
};
use otel_webhook_inject as inject;
use otel_webhook_inject::{
    Outcome,
    language::{self, CONTAINERS, LANGUAGES, Language},
    template::{Around, Workload},
};
use otel_webhook_review::{
    AdmissionResponse, MalformedReview, Panicked,
    envelope::{self, Envelope},
};

impl Admission {
    /// Answers a review with warnings about the pods that a workload will make.
    ///
    /// # Errors
    /// When `body` is not a review, so that there is no uid to answer to.
    pub async fn validate_workload(&self, body: &[u8]) -> Result<Vec<u8>, MalformedReview> {
        let envelope = match Envelope::<Value>::parse(body) {
            Ok(envelope) => envelope,
            // An object that cannot be read is no reason to leave the review without an answer.
            Err(MalformedReview::NotAReview(problem)) => {
                let uid = envelope::uid(body)?;
                let warning = format!("otel-webhook: the object cannot be read: {problem}");
                return Ok(AdmissionResponse::allowed(&uid, Some(&warning)).write());
            }
            Err(malformed) => return Err(malformed),
        };
        let uid = envelope.uid.clone();
        let Ok(verdict) = self.advise(envelope).await else {
            tracing::error!("the core panicked; the workload goes on without warnings");
            let warning = "otel-webhook failed; the workload was not looked at";
            return Ok(AdmissionResponse::allowed(&uid, Some(warning)).write());
        };
        let warnings = verdict.warnings.iter().map(|warning| format!("otel-webhook: {}", warning.message));
        Ok(AdmissionResponse::allowed(&uid, None).warning(warnings).write())
    }

    async fn advise(&self, envelope: Envelope<'_, Value>) -> Result<Verdict, Panicked> {
        let Envelope { namespace, operation, sub_resource, object, .. } = envelope;
        let Some(mut object) = object.filter(Value::is_object) else { return Ok(Verdict::default()) };
        let is_change = ["CREATE", "UPDATE"].contains(&&*operation) && sub_resource.is_empty();
        if !is_change {
            return Ok(Verdict::default());
        }
        let snapshot = self.store.snapshot();
        let learned = self.unknown_namespace(&snapshot.catalogue, &namespace, cluster::deadline()).await;
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

/// What is to be said of a workload; nothing at all where the object is none,
/// or where another object made it that was looked at in its place.
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
    // A CronJob has a template of Jobs, and that one of pods: only the last reaches them.
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

/// Whether a controller made the object, so that nobody sees its warnings.
fn is_made(kind: &str, metadata: &Value) -> bool {
    let owners = metadata["ownerReferences"].as_array();
    ["ReplicaSet", "Job", "Pod"].contains(&kind)
        && owners.is_some_and(|owners| owners.iter().any(|owner| owner["controller"] == true))
}

/// The annotations of an object's metadata that are ours, without the prefix.
fn ours(metadata: &Value) -> impl Iterator<Item = &str> {
    let all = metadata["annotations"].as_object().into_iter().flatten();
    all.filter_map(|(key, _)| key.strip_prefix(ANNOTATION_PREFIX))
}

fn is_valid(key: &str) -> bool {
    valid().any(|valid| valid == key)
}

fn valid() -> impl Iterator<Item = &'static str> {
    let of = |language: &'static Language| {
        [language.inject, language.containers].into_iter().chain(language.annotations.iter().copied())
    };
    LANGUAGES.into_iter().flat_map(of).chain([CONTAINERS])
}

fn annotation(metadata: &str, key: &str) -> String {
    format!("{metadata}.annotations[{ANNOTATION_PREFIX}{key}]")
}

fn check_keys(verdict: &mut Verdict, metadata: &Value, path: &str) {
    for key in ours(metadata).filter(|key| !is_valid(key)) {
        let message = if key.starts_with("default-auto-instrumentation-") && key.ends_with("-image") {
            format!("the annotation {ANNOTATION_PREFIX}{key} means something on Instrumentations only")
        } else {
            let suggestion = suggestion(key, valid());
            format!("there is no annotation {ANNOTATION_PREFIX}{key}{suggestion}")
        };
        verdict.warn("unknown-annotation", annotation(path, key), message);
    }
}

/// Controllers give their pods the template's annotations, never their own.
fn check_place(verdict: &mut Verdict, metadata: &Value, path: &str, whose: &str, workload: &Workload<'_>) {
    let of_template = &workload.pod["metadata"];
    let asks = |key: &&str| LANGUAGES.iter().any(|language| language.inject == *key);
    for key in ours(metadata).filter(asks).filter(|key| ours(of_template).all(|other| other != *key)) {
        let message = format!(
            "the annotation {ANNOTATION_PREFIX}{key} does nothing on the {whose} itself; move it to {}",
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
    // A pod that cannot be read gets a warning of its own.
    for (language, name) in named.unwrap_or_default() {
        let message = format!(
            "{}: the Instrumentation \"{name}\" is named, so it is used, but its selector does not match \
             the labels of the pod",
            language.name
        );
        verdict.warn("selector-mismatch", field(workload, language), message);
    }
}

fn field(workload: &Workload<'_>, language: &Language) -> String {
    annotation(&workload.path("metadata"), language.inject)
}

/// What the core found, and what it will do.
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
