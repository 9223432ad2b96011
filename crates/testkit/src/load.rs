//! What benches share: reviews, clients that send them, and figures.

#![allow(clippy::missing_errors_doc, reason = "they fail as connections do")]

pub mod figures;
pub mod good;
pub mod hostile;
pub mod limit_ranges;
pub mod link;
pub mod material;
pub mod process;
pub mod sender;
pub mod server;
pub mod stages;
pub mod trust;
