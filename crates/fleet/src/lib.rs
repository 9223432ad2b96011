//! Day two: the states of running pods, and plans of the restarts that bring them up to date.
//!
//! ```text
//! what a pod has + what a new pod would get ──> state
//! states ──> counts of Instrumentations and workloads
//! workloads + Instrumentations + ledger ──> restarts to make now, and why the others wait
//! ```
//!
//! Pure: no I/O, no clock, no environment. The time is an argument, so that the simulation
//! of `restart` runs months in seconds. The decision about a new pod is made by the crate
//! `inject`; this crate compares and plans.

pub mod restart;
pub mod state;
pub mod workload;
