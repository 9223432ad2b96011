//! What a plan asks for.

use super::change::Change;
use crate::workload::Workload;

/// The least number of available pods at which one is evicted.
pub const LEAST_AVAILABLE: usize = 2;

/// One request to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write a change into the template and the record of a workload, in one patch.
    Rollout {
        /// The workload.
        workload: Workload,
        /// The change.
        change: Change,
    },
    /// Evict a pod.
    Evict {
        /// The workload of the pod.
        workload: Workload,
        /// The name of the pod.
        pod: String,
        /// Its UID, as a precondition.
        uid: String,
    },
}
