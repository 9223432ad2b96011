//! The endpoints of the webhook.

use tokio::time::Instant;

use crate::admission::{Admission, Undecided};
use otel_webhook_review::MalformedReview;

/// The endpoints of the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Injects into pods.
    MutatePod,
    /// Defaults Instrumentations.
    MutateInstrumentation,
    /// Validates Instrumentations.
    ValidateInstrumentation,
    /// Warns about workloads whose pods will not be injected.
    ValidateWorkloads,
}

impl Endpoint {
    /// All endpoints.
    pub const ALL: [Self; 4] = [
        Self::MutatePod,
        Self::MutateInstrumentation,
        Self::ValidateInstrumentation,
        Self::ValidateWorkloads,
    ];

    /// Returns the path. It is the operator's path if there is one, so that its webhook configurations can be reused.
    pub const fn path(self) -> &'static str {
        match self {
            Self::MutatePod => "/mutate-v1-pod",
            Self::MutateInstrumentation => "/mutate-opentelemetry-io-v1alpha1-instrumentation",
            Self::ValidateInstrumentation => "/validate-opentelemetry-io-v1alpha1-instrumentation",
            Self::ValidateWorkloads => "/validate-workloads",
        }
    }

    /// Decides a review.
    ///
    /// # Errors
    /// If the body is not a review, or the deadline passes.
    pub async fn review(
        self,
        admission: &Admission,
        body: &[u8],
        deadline: Instant,
    ) -> Result<Vec<u8>, Undecided> {
        match self {
            Self::MutatePod => admission.mutate_pod(body, deadline).await,
            Self::MutateInstrumentation => Ok(admission.mutate_instrumentation(body)?),
            Self::ValidateInstrumentation => Ok(admission.validate_instrumentation(body)?),
            Self::ValidateWorkloads => Ok(admission.validate_workload(body, deadline).await?),
        }
    }

    /// Allows the object of a review that was not decided in time. None for Instrumentations: they are not stored
    /// without validation.
    pub fn allow_undecided(
        self,
        admission: &Admission,
        body: &[u8],
        reason: &str,
    ) -> Option<Result<Vec<u8>, MalformedReview>> {
        let consequence = match self {
            Self::MutatePod => "the pod is not injected",
            Self::ValidateWorkloads => "the workload was not checked",
            Self::MutateInstrumentation | Self::ValidateInstrumentation => return None,
        };
        Some(admission.allow_undecided(body, consequence, reason))
    }
}
