//! Flags of what the server's work may use.

use clap::Args;

use super::failure::Failure;
use crate::server::BodyLimits;

/// Flags of limits.
#[derive(Debug, Args)]
pub struct LimitFlags {
    /// MiB of memory for the bodies of all requests together; those that find none in time are not injected
    #[arg(
        long,
        env = "OTEL_WEBHOOK_MAX_REVIEW_MEMORY",
        default_value_t = BodyLimits::default().together,
        value_name = "MIB",
        value_parser = clap::value_parser!(u32).range(1..=65_536),
        help_heading = "Server"
    )]
    max_review_memory: u32,

    /// MiB of the largest body of a request; the status for a larger one is 413
    #[arg(
        long,
        env = "OTEL_WEBHOOK_MAX_REVIEW_SIZE",
        default_value_t = BodyLimits::default().each,
        value_name = "MIB",
        value_parser = clap::value_parser!(u32).range(1..=1024),
        help_heading = "Server"
    )]
    max_review_size: u32,
}

impl LimitFlags {
    /// Returns the bounds of bodies.
    ///
    /// # Errors
    /// If the largest body could never find the memory.
    pub fn bodies(&self) -> Result<BodyLimits, Failure> {
        let limits = BodyLimits { each: self.max_review_size, together: self.max_review_memory };
        if limits.together < limits.each {
            return Err(Failure::unreadable(format!(
                "--max-review-memory is {} and has to be at least {}, the value of --max-review-size",
                limits.together, limits.each
            )));
        }
        Ok(limits)
    }
}
