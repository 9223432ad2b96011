//! A step that a replica takes, and why it fails.

use std::future::Future;
use std::time::Duration;

use thiserror::Error;

use super::objects::RequestError;
use otel_webhook_managed_certs::plan::PlanError;

/// How long a step may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a step failed.
#[derive(Debug, Error)]
pub enum StepError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("it is left alone: {0}")]
    Foreign(String),
    #[error("no answer within {PATIENCE:?}")]
    NoAnswer,
}

/// The outcome of a step, which must not take longer than [`PATIENCE`].
pub async fn in_time(step: impl Future<Output = Result<(), StepError>>) -> Result<(), StepError> {
    tokio::time::timeout(PATIENCE, step).await.unwrap_or(Err(StepError::NoAnswer))
}
