//! Tests of the whole, in one program.

mod cli;
mod conformance;
mod server;
