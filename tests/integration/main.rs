//! Tests of the whole, in one program.

mod conformance;
#[path = "../support/secret_volume.rs"]
mod secret_volume;
mod server;
