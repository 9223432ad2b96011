//! A plan while it is made.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;

use super::{
    change::{Change, Consent},
    ledger::Ledger,
    pace::Pace,
    seen::{Instrumentation, Seen},
    step::Step,
};
use crate::workload::Workload;

/// What is seen, and when. Both lists have to be complete: what is not in them is treated as deleted.
#[derive(Clone, Copy, Debug)]
pub struct World<'w> {
    /// The present time.
    pub now: Timestamp,
    /// All Instrumentations.
    pub instrumentations: &'w [Instrumentation],
    /// All workloads with pods that have an agent or opt in.
    pub workloads: &'w [Seen],
}

/// A plan as it is made.
pub(super) struct Planning<'w> {
    /// What is seen.
    pub(super) world: World<'w>,
    /// The limits.
    pub(super) pace: &'w Pace,
    /// The ledger as it will be.
    pub(super) ledger: Ledger,
    /// The steps to take.
    pub(super) steps: Vec<Step>,
    /// The Instrumentations of outdated workloads with consent.
    pub(super) wanted: BTreeSet<&'w str>,
    /// The workloads by their names.
    pub(super) workloads: HashMap<&'w Workload, &'w Seen>,
    /// The Instrumentations by their UIDs.
    pub(super) instrumentations: HashMap<&'w str, &'w Instrumentation>,
}

/// A restart that begins.
pub(super) struct Start {
    /// How.
    pub(super) method: Consent,
    /// For what.
    pub(super) change: Change,
    /// Whether the workload has received the change already, and is only observed and relieved of failing pods.
    pub(super) is_again: bool,
}
