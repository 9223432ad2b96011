//! AdmissionReview in, AdmissionReview out.
//!
//! Architecture invariant: a pod is never refused. Whatever goes wrong after
//! the request's uid is known, the answer allows the pod as it came and says
//! why nothing was injected.
//!
//! Workloads are never refused either, only warned of.
//!
//! Instrumentations are the other way around: what cannot be judged is not
//! let in.

mod instrumentation;
mod workload;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

pub use instrumentation::judge;
pub use workload::advise;

use crate::{
    store::{
        Store,
        cluster::{self, Cluster},
    },
    telemetry::Metrics,
};
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject as inject;
use otel_webhook_inject::{Input, Outcome, Settings, catalogue::Catalogue, pod::Pod};
use otel_webhook_review::{AdmissionRequest, AdmissionResponse, MalformedReview, Panicked, Skip, one_line};

/// Answers reviews of pods, of workloads and of Instrumentations.
pub struct Admission {
    store: Store,
    settings: Settings,
    cluster: Option<Cluster>,
    metrics: Arc<Metrics>,
    images: DefaultImages,
    preview_warnings: bool,
}

impl Admission {
    /// Decides by what `store` knows. Owners that it does not know are asked
    /// for in the cluster, where there is one.
    pub fn new(store: Store, settings: Settings, cluster: Option<Cluster>, metrics: Arc<Metrics>) -> Self {
        Self { store, settings, cluster, metrics, images: DefaultImages::default(), preview_warnings: false }
    }

    /// The same with other images for Instrumentations that name none.
    #[must_use]
    pub fn with_images(self, images: DefaultImages) -> Self {
        Self { images, ..self }
    }

    /// The same, telling whoever applies a workload what will be injected as well.
    #[must_use]
    pub fn with_preview_warnings(self, preview_warnings: bool) -> Self {
        Self { preview_warnings, ..self }
    }

    /// Answers one review.
    ///
    /// # Errors
    /// When `body` is not a review, so that there is no uid to answer to.
    pub async fn mutate_pod(&self, body: &[u8]) -> Result<Vec<u8>, MalformedReview> {
        let started = Instant::now();
        let request = AdmissionRequest::parse(body)?;
        Ok(match &request.pod {
            Ok(pod) => {
                let outcome = self.review(&request, pod).await;
                let answer = AdmissionResponse::of(&request.uid, &outcome);
                self.record(&request, pod, &outcome, answer.summary(), started);
                answer.write()
            }
            Err(skip) => {
                if let Skip::Unreadable { .. } = skip {
                    tracing::warn!(
                        namespace = &*request.namespace,
                        reason = skip.to_string(),
                        "a pod was not injected"
                    );
                }
                AdmissionResponse::allowed(&request.uid, skip.warning().as_deref()).write()
            }
        })
    }

    /// The core's result for a pod; a panic in it costs this pod its agent, and nothing else.
    async fn review<'p>(
        &self,
        request: &'p AdmissionRequest<'p>,
        pod: &'p Pod<'p>,
    ) -> Result<Outcome, Panicked> {
        let snapshot = self.store.snapshot();
        let deadline = cluster::deadline();
        let learned = self.unknown_namespace(&snapshot.catalogue, &request.namespace, deadline).await;
        let input = Input {
            pod,
            namespace: &request.namespace,
            catalogue: learned.as_ref().unwrap_or(&snapshot.catalogue),
            settings: &self.settings,
        };
        let decision = caught(|| inject::decide(input))?;
        match &self.cluster {
            Some(cluster) => {
                let owners = cluster.owners(&decision.queries(), deadline).await;
                caught(|| inject::build(decision, &owners))
            }
            None => caught(|| inject::build(decision, &snapshot.owners)),
        }
    }

    /// The catalogue with a namespace that the watch has not brought yet, since
    /// its first pods follow right after it.
    async fn unknown_namespace(
        &self,
        catalogue: &Catalogue,
        name: &str,
        deadline: tokio::time::Instant,
    ) -> Option<Catalogue> {
        let cluster = self.cluster.as_ref().filter(|_| !catalogue.is_listed(name))?;
        let found = cluster.namespace(name, deadline).await?;
        Some(catalogue.with(name, &found))
    }

    /// Counts and logs what was asked for: who, where, what and why; never a variable's value.
    fn record(
        &self,
        request: &AdmissionRequest<'_>,
        pod: &Pod<'_>,
        outcome: &Result<Outcome, Panicked>,
        summary: Option<&str>,
        started: Instant,
    ) {
        let about = || (one_line(&*request.namespace), one_line(owner(pod)));
        match outcome {
            Err(Panicked) => {
                let (namespace, owner) = about();
                tracing::error!(namespace, owner, "the core panicked; the pod goes on without an agent");
            }
            Ok(outcome) if !outcome.is_asked() => {}
            Ok(outcome) => {
                let (namespace, owner) = about();
                let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
                for finding in outcome.counted() {
                    self.metrics.count_injection(finding.language, finding.reason.code());
                }
                let warned = one_line(warned(outcome));
                let injected = outcome.findings.iter().any(|finding| finding.reason.is_injected());
                let findings = summary.unwrap_or_default();
                let warned = (!warned.is_empty()).then_some(warned);
                tracing::info!(namespace, owner, injected, findings, warned, micros, "reviewed");
            }
        }
    }
}

/// Calls the core. It is pure, so nothing is left half done when it panics.
fn caught<T>(core: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(core)).map_err(|_| Panicked)
}

/// What was warned of beside the findings themselves, by codes: `java/order=EndpointWithoutScheme`.
fn warned(outcome: &Outcome) -> String {
    let warnings = outcome.told();
    let noted = warnings.iter().filter(|warning| warning.note.is_some());
    let said = noted.map(|warning| {
        let container = warning.finding.container.as_deref().unwrap_or("-");
        [warning.finding.language, "/", container, "=", warning.code()].concat()
    });
    said.collect::<Vec<_>>().join(" ")
}

/// Whose pod it is, for the log: its controller, or its own name.
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
