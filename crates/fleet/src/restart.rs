//! Restarts, by consent: which workloads are restarted now, and why the others are not.
//!
//! ```text
//! configuration changed ─ settles ─> one canary ─ stays healthy ─> the others, paced
//!                                      │ fails                       │ one fails
//!                                      └────────> stopped <──────────┘ ── resumed by annotation,
//!                                       in its namespace, or in all       or by the next change
//! ```
//!
//! Before each step, the caller asks the replicas of the webhook what they would inject ([`Webhook`]).
//!
//! [`plan`] is a function of what is seen in the cluster, the time and the [`Ledger`], which is kept in a
//! ConfigMap. A step is in the ledger before it is taken, and a workload's own annotation says which change
//! it has received; both together let another leader neither repeat nor forget a restart.

mod change;
mod flights;
mod ledger;
mod observed;
mod plan;
mod planning;
mod received;
mod rollout;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod verdict;

pub use change::{Change, Consent, InvalidConsent, Pace, Step, annotations};
pub use ledger::{Flight, LEDGER_KEY, Ledger, Stop, Trial, Wave};
pub use observed::{FailingPod, Fit, Health, Instrumentation, ObservedWorkload, Unwell};
pub use plan::{Plan, Progress, plan};
pub use planning::{HASHES, Observed, Webhook};
pub use rollout::{Around, Progress as RolloutProgress, Rollout};
pub use verdict::{Left, Verdict, Wait};
