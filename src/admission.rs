//! AdmissionReview in, AdmissionReview out.
//!
//! Architecture invariant: a pod is never refused. Whatever goes wrong after
//! the request's uid is known, the answer allows the pod as it came and says
//! why nothing was injected.
//!
//! Workloads are never refused either, only warned of.
//!
//! Instrumentations are the other way around: what cannot be judged is not
//! let in.

mod answering;
mod instrumentation;
mod pod;
mod workload;

pub use answering::Admission;
pub use instrumentation::judge;
pub use workload::advise;
