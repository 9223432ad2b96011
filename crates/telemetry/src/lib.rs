//! Log lines to standard error, and metrics.

mod connections;
mod fleet;
mod log;
mod managed;
mod metrics;
mod process;
mod restarts;

pub use connections::{Closed, ConnectionMetrics};
pub use fleet::FleetMetrics;
pub use log::{LogFormat, Logging, LoggingError, init_logging, log_panics};
pub use managed::{ManagedMetrics, ManagedOperation};
pub use metrics::{Metrics, ReviewOutcome};
pub use restarts::{RestartMetrics, RestartResult};
