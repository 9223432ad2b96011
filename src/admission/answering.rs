//! What answers reviews, whatever they are of.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use crate::{
    store::{Store, cluster::ClusterLookup},
    telemetry::Metrics,
};
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::{Settings, catalogue::Catalogue};
use otel_webhook_review::Panicked;

/// Answers reviews of pods, of workloads and of Instrumentations.
pub struct Admission {
    pub(super) store: Store,
    pub(super) settings: Settings,
    pub(super) cluster: Option<ClusterLookup>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) images: DefaultImages,
    pub(super) preview_warnings: bool,
}

impl Admission {
    /// Decides by what `store` knows. Owners that it does not know are asked
    /// for in the cluster, where there is one.
    pub fn new(
        store: Store,
        settings: Settings,
        cluster: Option<ClusterLookup>,
        metrics: Arc<Metrics>,
    ) -> Self {
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

    /// The catalogue with a namespace that the watch has not brought yet, since
    /// its first pods follow right after it.
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
}

/// Calls the core. It is pure, so nothing is left half done when it panics.
pub fn caught<T>(core: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(core)).map_err(|_| Panicked)
}
