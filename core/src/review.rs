//! AdmissionReviews as bytes: what the API server asks, and what it is told.

pub mod answer;
pub mod envelope;
pub mod refusal;
mod request;

pub use answer::Answer;
pub use envelope::MalformedReview;
pub use request::{Request, Skip};

/// The core panicked. Its message is in the log by the panic hook.
#[derive(Clone, Copy, Debug)]
pub struct Panicked;

/// Text without control characters. Names are not checked before webhooks are
/// called; a line break in one would forge lines of the log.
pub fn one_line(text: impl Into<String>) -> String {
    let text = text.into();
    let is_plain = text.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    if is_plain { text } else { text.replace(char::is_control, " ") }
}
