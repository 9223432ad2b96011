//! AdmissionReviews and ConversionReviews as bytes: the request of the API server, and the response to it.
//!
//! From the bottom up:
//!
//! - `line`, `bounds`: text for lines and headers, and its maximum size
//! - [`envelope`]: the review around its object
//! - [`request`]: a pod, borrowed from the body
//! - [`refusal`]: the status of a response that rejects an object
//! - [`conversion`]: objects of one version as those of another
//! - [`response`]: warnings, audit annotations, the patch, and the review that goes back
//!
//! No I/O, no clock.

mod bounds;
pub mod conversion;
pub mod envelope;
pub mod refusal;
pub mod request;
pub mod response;

pub use bounds::{
    LONGEST_SUMMARY, LONGEST_WARNING, MOST_WARNINGS, name_in_line, sentences_of, summary_of, text_in_line,
};
pub use envelope::MalformedReview;
pub use otel_webhook_inject::line::{is_hidden, one_line, one_line_of_json};
pub use request::{AdmissionRequest, Skip};
pub use response::{AdmissionResponse, Panicked};
