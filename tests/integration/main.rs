//! Tests of the whole, in one program.

mod conformance;
mod server;
