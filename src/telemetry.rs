//! What the process tells about itself: log lines to standard error, and metrics.
//!
//! Uses nothing else of this crate, so that everything else may use it.

mod log;
mod managed;
mod metrics;
mod process;

pub use log::{LogFormat, Logging, LoggingError, init_logging};
pub use managed::{ManagedMetrics, ManagedOperation};
pub use metrics::{Metrics, ReviewOutcome};
