//! Day two: the states of running pods, and plans of the restarts that bring them up to date.
//!
//! ```text
//! running pods ──> census: their agents, and each template once
//! what a pod has + what a new pod would get ──> state
//! what its kubelet says of its containers    ──> failing, in addition
//! the instances that a source reports        ──> heard, in addition
//! a pod and where it sends                   ──> silent: likely causes, ranked
//! census + states ──> report: counts of Instrumentations and workloads, reasons, remedies
//! workloads + Instrumentations + ledger ──> restarts to make now, and why the others wait
//! ```
//!
//! Pure: no I/O, no clock, no environment. The time is an argument, so that the simulation
//! of `restart` runs months in seconds. The decision about a new pod is made by the crate
//! `inject`; this crate compares and plans.

pub mod advice;
mod cause;
pub mod census;
pub mod count;
pub mod coverage;
pub mod failing;
pub mod heard;
pub mod injected;
pub mod mistakes;
pub mod next;
pub mod pod;
pub mod report;
pub mod restart;
pub mod silent;
pub mod state;
pub mod workload;
