//! Conversions of Instrumentations between versions.

use super::answering::Admission;
use otel_webhook_review::{MalformedReview, conversion};

impl Admission {
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
}
