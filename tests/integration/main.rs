//! Tests of the whole, in one program.

mod binary;
mod captured;
mod cli;
mod conformance;
mod defaulting;
mod generated;
mod modules;
mod server;
mod untouched;
mod validation;
