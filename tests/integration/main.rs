//! Tests of the whole, in one program.

mod binary;
mod captured;
mod cli;
mod conformance;
mod demo;
mod generated;
#[path = "../support/generator.rs"]
mod generator;
#[path = "../support/invariants.rs"]
mod invariants;
mod modules;
mod properties;
#[path = "../support/secret_volume.rs"]
mod secret_volume;
mod server;
mod untouched;
