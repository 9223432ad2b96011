//! Tests of the whole, in one program.

mod binary;
mod captured;
mod cli;
mod conformance;
mod demo;
mod generated;
mod modules;
mod server;
mod untouched;
