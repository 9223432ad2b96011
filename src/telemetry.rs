//! Log lines to standard error, and metrics.
//!
//! Uses no other module of this crate, so that all others can use it.

mod log;
mod managed;
mod metrics;
mod process;

pub use log::{LogFormat, Logging, LoggingError, init_logging};
pub use managed::{ManagedMetrics, ManagedOperation};
pub use metrics::{Metrics, ReviewOutcome};
