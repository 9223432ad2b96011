//! How fast workloads are restarted.

use jiff::SignedDuration;

/// How fast workloads are restarted. Each is a flag of the controller.
#[derive(Clone, Debug)]
pub struct Pace {
    /// How long an Instrumentation has to be unchanged.
    pub settle: SignedDuration,
    /// How long a restarted workload is observed after it became healthy; the canary delays the others so long.
    pub observe: SignedDuration,
    /// How long a restart may make no progress, in addition to `minReadySeconds`.
    pub progress: SignedDuration,
    /// How many workloads are restarted at the same time.
    pub at_once: usize,
    /// How many of one namespace are restarted at the same time.
    pub per_namespace: usize,
    /// How many restarts and evictions begin in a minute.
    pub per_minute: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            settle: SignedDuration::from_secs(60),
            observe: SignedDuration::from_mins(2),
            progress: SignedDuration::from_mins(10),
            at_once: 3,
            per_namespace: 1,
            per_minute: 10,
        }
    }
}
