//! Tests of the whole, in one program.

mod conformance;
mod generated;
mod modules;
mod server;
mod untouched;
