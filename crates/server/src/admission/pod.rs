//! Reviews of pods: never rejected, injected if they opt in.

use std::time::Instant;

use tokio::time;

use super::answering::{Admission, Undecided, caught};
use otel_webhook_inject as inject;
use otel_webhook_inject::{Input, Outcome, pod::Pod, shown::shown};
use otel_webhook_review::{
    AdmissionRequest, AdmissionResponse, Panicked, Skip, name_in_line, sentences_of, summary_of, text_in_line,
};
use otel_webhook_store::cluster;

impl Admission {
    /// Responds to a review of a pod.
    ///
    /// # Errors
    /// If `body` is not a review: without its uid there can be no response. If the deadline passes during lookups.
    pub async fn mutate_pod(&self, body: &[u8], deadline: time::Instant) -> Result<Vec<u8>, Undecided> {
        let started = Instant::now();
        let request = AdmissionRequest::parse(body)?;
        Ok(match &request.pod {
            Ok(pod) => {
                let outcome = self.review(&request, pod, deadline).await?;
                let answer = AdmissionResponse::of(&request.uid, &outcome).also(mistakes(pod));
                self.record(&request, pod, &outcome, answer.summary(), started);
                answer.write()
            }
            Err(skip) => {
                if let Skip::Unreadable { .. } = skip {
                    tracing::warn!(
                        namespace = name_in_line(&request.namespace),
                        reason = text_in_line(&skip),
                        "skipped a pod that cannot be read"
                    );
                }
                AdmissionResponse::allowed(&request.uid, skip.warning().as_deref()).write()
            }
        })
    }

    /// Returns the result for a pod. After a panic only this pod is not injected.
    async fn review<'p>(
        &self,
        request: &'p AdmissionRequest<'p>,
        pod: &'p Pod<'p>,
        deadline: time::Instant,
    ) -> Result<Result<Outcome, Panicked>, Undecided> {
        let snapshot = self.store.snapshot();
        let patience = cluster::deadline().min(deadline);
        let learned = self.unknown_namespace(&snapshot.catalogue, &request.namespace, patience).await;
        let input = Input {
            pod,
            namespace: &request.namespace,
            catalogue: learned.as_ref().unwrap_or(&snapshot.catalogue),
            settings: &self.settings,
        };
        let decision = match caught(|| inject::decide(input)) {
            Ok(decision) => decision,
            Err(panicked) => return Ok(Err(panicked)),
        };
        let Some(cluster) = &self.cluster else {
            return Ok(caught(|| inject::build(decision, &snapshot.owners)));
        };
        let owners = cluster.owners(&decision.queries(), patience).await;
        if time::Instant::now() >= deadline {
            return Err(Undecided::Late);
        }
        Ok(caught(|| inject::build(decision, &owners)))
    }

    /// Counts and logs the result of a pod that opted in; never the value of a variable.
    fn record(
        &self,
        request: &AdmissionRequest<'_>,
        pod: &Pod<'_>,
        outcome: &Result<Outcome, Panicked>,
        summary: Option<&str>,
        started: Instant,
    ) {
        let about = || (name_in_line(&request.namespace), name_in_line(&owner(pod)));
        match outcome {
            Err(Panicked) => {
                let (namespace, owner) = about();
                tracing::error!(namespace, owner, "injection panicked; the pod is not injected");
            }
            Ok(outcome) if !outcome.is_asked() => {}
            Ok(outcome) => {
                let (namespace, owner) = about();
                let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
                for finding in outcome.counted() {
                    self.metrics.count_injection(finding.language, finding.reason.code());
                }
                let warned = warned(outcome);
                let injected = outcome.findings.iter().any(|finding| finding.reason.is_injected());
                let findings = summary.unwrap_or_default();
                let warned = (!warned.is_empty()).then_some(warned);
                match missing(outcome) {
                    None => tracing::info!(namespace, owner, injected, findings, warned, micros, "reviewed"),
                    Some(reason) => {
                        tracing::warn!(
                            namespace, owner, injected, findings, reason, warned, micros, "reviewed"
                        );
                    }
                }
            }
        }
    }
}

/// Returns the codes of the warnings about injections: `java/order=EndpointWithoutScheme`.
fn warned(outcome: &Outcome) -> String {
    let warnings = outcome.all_warnings();
    let noted = warnings.iter().filter(|warning| warning.note.is_some());
    summary_of(noted.map(|warning| {
        let container = shown(warning.finding.container.as_deref().unwrap_or("-"));
        format!("{}/{container}={}", warning.finding.name(), warning.code())
    }))
}

/// Returns the sentences about what was opted in to and not injected. None if there is nothing of it, or if an
/// earlier review of the pod said it.
fn missing(outcome: &Outcome) -> Option<String> {
    if !outcome.counted().any(|finding| finding.reason.is_trouble()) {
        return None;
    }
    let warnings = outcome.all_warnings();
    let missing = warnings.iter().filter(|warning| warning.note.is_none());
    Some(sentences_of(missing))
}

/// Returns warnings about the annotations of a pod that a user creates. Controllers drop them.
fn mistakes(pod: &Pod<'_>) -> Vec<String> {
    let references = pod.metadata.owner_references.iter();
    let is_made = references.into_iter().any(|reference| reference.controller == Some(true));
    let mistakes = if is_made { Vec::new() } else { inject::mistakes::of_pod(pod) };
    mistakes.iter().map(|mistake| format!("otel-webhook: {mistake}")).collect()
}

/// Returns the owner of a pod for the log: its controller, or its own name.
fn owner(pod: &Pod<'_>) -> String {
    let metadata = &pod.metadata;
    let controller = metadata.owner_references.iter().find(|owner| owner.controller == Some(true));
    let (kind, name) = match controller.or(metadata.owner_references.first()) {
        Some(owner) => (&*owner.kind, &owner.name),
        None if metadata.name.is_empty() => ("Pod", &metadata.generate_name),
        None => ("Pod", &metadata.name),
    };
    [kind, "/", name].concat()
}
