//! The endpoints of the webhook.

use tokio::time::Instant;

use super::body_memory::{BodyMemory, Share};
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
    /// Converts Instrumentations of one version to another.
    Convert,
}

impl Endpoint {
    /// All endpoints.
    pub const ALL: [Self; 5] = [
        Self::MutatePod,
        Self::MutateInstrumentation,
        Self::ValidateInstrumentation,
        Self::ValidateWorkloads,
        Self::Convert,
    ];

    /// Returns the path. It is the operator's path if there is one, so that its webhook configurations can be reused.
    pub const fn path(self) -> &'static str {
        match self {
            Self::MutatePod => "/mutate-v1-pod",
            Self::MutateInstrumentation => "/mutate-opentelemetry-io-v1alpha1-instrumentation",
            Self::ValidateInstrumentation => "/validate-opentelemetry-io-v1alpha1-instrumentation",
            Self::ValidateWorkloads => "/validate-workloads",
            Self::Convert => "/convert",
        }
    }

    /// Returns what a body of this endpoint may take.
    pub fn share(self, memory: &BodyMemory) -> Share {
        match self {
            Self::Convert => memory.of_conversion(),
            _ => memory.of_review(),
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
            Self::Convert => Ok(admission.convert(body)?),
        }
    }

    /// Allows the object of a review that was not decided in time. None for Instrumentations: they are not stored
    /// without validation, and not converted otherwise.
    pub fn allow_undecided(
        self,
        admission: &Admission,
        body: &[u8],
        reason: &str,
    ) -> Option<Result<Vec<u8>, MalformedReview>> {
        let consequence = match self {
            Self::MutatePod => "the pod is not injected",
            Self::ValidateWorkloads => "the workload was not checked",
            Self::MutateInstrumentation | Self::ValidateInstrumentation | Self::Convert => return None,
        };
        Some(admission.allow_undecided(body, consequence, reason))
    }
}
