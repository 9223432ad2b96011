//! AdmissionReviews as bytes: what the API server asks, and what it is told.

pub mod answer;
pub mod envelope;
pub mod refusal;
mod request;

use std::fmt::{self, Write as _};

pub use answer::Answer;
pub use envelope::MalformedReview;
pub use request::{Request, Skip};

/// The core panicked. Its message is in the log by the panic hook.
#[derive(Clone, Copy, Debug)]
pub struct Panicked;

/// Text without control characters. Names are not checked before webhooks are
/// called; a line break in one would forge lines of the log.
pub fn one_line(text: impl fmt::Display) -> String {
    let mut line = String::with_capacity(64);
    write!(line, "{text}").expect("a string takes all text");
    let is_plain = line.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    if is_plain { line } else { line.replace(char::is_control, " ") }
}
