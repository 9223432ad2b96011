//! Reviews that are not decided in time.

use otel_webhook_inject::text::Text;
use otel_webhook_review::{AdmissionResponse, MalformedReview, envelope, envelope::Envelope, name_in_line};
use serde::de::IgnoredAny;
use thiserror::Error;

use super::answering::Admission;

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

impl Admission {
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
