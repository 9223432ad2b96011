//! What otel-webhook decides, and how: reviews read, agents chosen, patches
//! and answers written. No I/O, no clock, no environment and no logging.
//!
//! A crate of its own, so that all of this is compiled for speed and the rest
//! of the program for size.

pub mod api;
pub mod inject;
pub mod review;
