//! AdmissionReviews as bytes: the request of the API server, and the response to it.
//!
//! From the bottom up:
//!
//! - [`envelope`]: the review around its object
//! - [`request`]: a pod, borrowed from the body
//! - [`refusal`]: the status of a response that rejects an object
//! - [`response`]: warnings, audit annotations, the patch, and the review that goes back
//!
//! No I/O, no clock.

pub mod envelope;
mod line;
pub mod refusal;
pub mod request;
pub mod response;

pub use envelope::MalformedReview;
pub use line::one_line;
pub use request::{AdmissionRequest, Skip};
pub use response::{AdmissionResponse, Panicked};
