//! Responds to AdmissionReviews and ConversionReviews.
//!
//! Architecture invariant: a pod is never rejected. If an error occurs after the uid of the request is known,
//! the response allows the pod unchanged, with the reason as a warning.
//!
//! Workloads are never rejected either; the response only contains warnings.
//!
//! Instrumentations that cannot be validated are rejected, and those that cannot be converted are not changed.

mod answering;
mod in_use;
mod instrumentation;
mod opt_in;
mod pod;
mod workload;

pub use answering::{Admission, Undecided};
pub use instrumentation::validate;
pub use workload::advise;
