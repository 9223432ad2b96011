//! The state that all endpoints share, and the responses that need no decision.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde::de::IgnoredAny;
use thiserror::Error;

use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::{Settings, catalogue::Catalogue, text::Text};
use otel_webhook_review::{
    AdmissionResponse, MalformedReview, Panicked, conversion,
    envelope::{self, Envelope},
    name_in_line,
};
use otel_webhook_store::{Store, cluster::ClusterLookup};
use otel_webhook_telemetry::Metrics;

/// Responds to reviews of pods, workloads and Instrumentations.
pub struct Admission {
    pub(super) store: Store,
    pub(super) settings: Settings,
    pub(super) cluster: Option<ClusterLookup>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) images: DefaultImages,
    pub(super) preview_warnings: bool,
    pub(super) only_annotated: bool,
}

impl Admission {
    /// Decides with the objects of `store`. Owners that are not in it are looked up in the cluster, if there is one.
    pub fn new(
        store: Store,
        settings: Settings,
        cluster: Option<ClusterLookup>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            store,
            settings,
            cluster,
            metrics,
            images: DefaultImages::default(),
            preview_warnings: false,
            only_annotated: false,
        }
    }

    /// Sets the images for Instrumentations that specify none.
    #[must_use]
    pub fn with_images(self, images: DefaultImages) -> Self {
        Self { images, ..self }
    }

    /// Sets whether warnings for workloads also report what will be injected.
    #[must_use]
    pub fn with_preview_warnings(self, preview_warnings: bool) -> Self {
        Self { preview_warnings, ..self }
    }

    /// Sets whether the webhook is registered only for pods that opt in themselves.
    #[must_use]
    pub fn with_only_annotated(self, only_annotated: bool) -> Self {
        Self { only_annotated, ..self }
    }

    /// Returns the hashes of Instrumentations, by `namespace/name`, in the pods of a namespace: what a review would write
    /// into the stamp, without a review.
    pub fn hashes<'n>(&self, namespace: &str, names: impl Iterator<Item = &'n str>) -> Vec<Box<str>> {
        let snapshot = self.store.snapshot();
        let catalogue = &snapshot.catalogue;
        let stored = names.filter_map(|name| {
            let (of, name) = name.split_once('/')?;
            catalogue.namespace(of)?.instrumentations.get(name)
        });
        let languages = self.settings.languages;
        stored.flat_map(|stored| stored.hashes_in(catalogue.namespace(namespace), languages)).collect()
    }

    /// Adds a namespace that the watch has not received yet: the first pods are often created right after it.
    pub(super) async fn unknown_namespace(
        &self,
        catalogue: &Catalogue,
        name: &str,
        deadline: tokio::time::Instant,
    ) -> Option<Catalogue> {
        let cluster = self.cluster.as_ref().filter(|_| !catalogue.is_listed(name))?;
        let found = cluster.namespace(name, deadline).await?;
        Some(catalogue.with(name, &found))
    }

    /// Converts the objects of a ConversionReview, or responds with what prevents it.
    ///
    /// # Errors
    /// If `body` is not a review with a uid, which a response requires.
    pub fn convert(&self, body: &[u8]) -> Result<Vec<u8>, MalformedReview> {
        let conversion = conversion::respond(body)?;
        if let Some(failure) = conversion.failure {
            tracing::warn!(failure, "Instrumentations were not converted");
        }
        Ok(conversion.review)
    }

    /// Allows an object unchanged, with a warning that says why, and logs it.
    ///
    /// # Errors
    /// If `body` is not a review: without its uid there can be no response.
    pub fn allow_undecided(
        &self,
        body: &[u8],
        consequence: &str,
        reason: &str,
    ) -> Result<Vec<u8>, MalformedReview> {
        let (uid, namespace) = match Envelope::<IgnoredAny>::parse(body) {
            Ok(envelope) => (envelope.uid, envelope.namespace),
            Err(MalformedReview::NotAReview(_)) => (envelope::uid(body)?, Text::default()),
            Err(malformed) => return Err(malformed),
        };
        tracing::warn!(
            namespace = name_in_line(&namespace),
            consequence,
            reason,
            "allowed an object without a decision"
        );
        let warning = format!("otel-webhook: {consequence}: {reason}");
        Ok(AdmissionResponse::allowed(&uid, Some(&warning)).write())
    }
}

/// Why a review has no decision.
#[derive(Debug, Error)]
pub enum Undecided {
    /// The body is not a review: without its uid there can be no response.
    #[error(transparent)]
    Malformed(#[from] MalformedReview),
    /// The deadline has passed during the lookups.
    #[error("the deadline has passed")]
    Late,
}

/// Calls a decision and catches panics. Decisions are pure, so a panic cannot leave inconsistent state.
pub fn caught<T>(core: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(core)).map_err(|_| Panicked)
}
