//! Flags of what the server's work may use.

use clap::Args;

use crate::server::REVIEW_MEMORY;

/// Flags of limits.
#[derive(Debug, Args)]
pub struct LimitFlags {
    /// MiB of memory for the bodies of all requests together; those that find none in time are not injected
    #[arg(
        long,
        env = "OTEL_WEBHOOK_MAX_REVIEW_MEMORY",
        default_value_t = REVIEW_MEMORY,
        value_name = "MIB",
        // The largest body has 8 MiB.
        value_parser = clap::value_parser!(u32).range(8..=65_536),
        help_heading = "Server"
    )]
    pub max_review_memory: u32,
}
