//! A step of a replica, and why it fails.

use std::future::Future;
use std::time::Duration;

use thiserror::Error;

use super::objects::RequestError;
use otel_webhook_managed_certs::plan::PlanError;

/// The timeout of a step.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a step failed.
#[derive(Debug, Error)]
pub enum StepError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("not changed: {0}")]
    Foreign(String),
    #[error("timed out after {PATIENCE:?}")]
    NoAnswer,
}

/// Returns the outcome of a step, with the timeout [`PATIENCE`].
pub async fn in_time(step: impl Future<Output = Result<(), StepError>>) -> Result<(), StepError> {
    tokio::time::timeout(PATIENCE, step).await.unwrap_or(Err(StepError::NoAnswer))
}
