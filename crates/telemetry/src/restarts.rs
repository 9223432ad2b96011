//! Metrics of restarts. Only a controller that restarts workloads has them.

use std::sync::atomic::{AtomicI64, AtomicU64};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// What came of a restart, or of a step of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartResult {
    /// A workload's template was annotated, or the eviction of its pods begins.
    Begun,
    /// Its pods were replaced, and have stayed healthy.
    Done,
    /// They have not, so that the restarts of its Instrumentation were stopped, in its namespace or in all.
    Stopped,
    /// A pod was evicted.
    Evicted,
    /// The API server refused a restart or an eviction, as by a `PodDisruptionBudget`.
    Refused,
    /// A request failed.
    Failed,
    /// The ConfigMap that remembers restarts could not be read or written, so that none began.
    Unrecorded,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    result: &'static str,
}

/// See the module.
#[derive(Debug, Default)]
pub struct RestartMetrics {
    results: Family<Labels, Counter<u64, AtomicU64>>,
    stopped: Family<[(&'static str, &'static str); 0], Gauge<i64, AtomicI64>>,
}

impl RestartMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "otel_webhook_restarts",
            "Restarts of workloads by result: begun, done and stopped; and their steps: evicted, refused, failed, and unrecorded for those that could not be remembered",
            self.results.clone(),
        );
        registry.register(
            "otel_webhook_restarts_stopped",
            "Instrumentations whose restarts are stopped",
            self.stopped.clone(),
        );
    }

    /// Shows all results, before the first restart too.
    pub fn begin(&self) {
        for result in RestartResult::ALL {
            drop(self.results.get_or_create(&Labels { result: result.name() }));
        }
    }

    /// Counts one.
    pub fn count(&self, result: RestartResult) {
        self.results.get_or_create(&Labels { result: result.name() }).inc();
    }

    /// Sets for how many Instrumentations restarts are stopped.
    pub fn set_stopped(&self, count: usize) {
        self.stopped.get_or_create(&[]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Removes what only a leader knows.
    pub fn clear(&self) {
        self.stopped.clear();
    }
}

impl RestartResult {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Begun,
        Self::Done,
        Self::Stopped,
        Self::Evicted,
        Self::Refused,
        Self::Failed,
        Self::Unrecorded,
    ];

    /// Returns the value of the label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Evicted => "evicted",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unrecorded => "unrecorded",
        }
    }
}
