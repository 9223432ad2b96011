//! Tests of the whole, in one program.

#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` makes a value, and a test reads better without the &"
)]

mod binary;
mod broken;
#[path = "../support/broken.rs"]
mod broken_fields;
mod captured;
mod cli;
mod conformance;
mod defaulting;
mod demand;
mod demo;
mod differences;
mod generated;
#[path = "../support/generator.rs"]
mod generator;
mod instrumentation;
#[path = "../support/invariants.rs"]
mod invariants;
mod languages;
mod modules;
mod properties;
mod reasons;
mod reinvocation;
#[path = "../support/review.rs"]
mod review;
mod sanity;
mod scripts;
#[path = "../support/secret_volume.rs"]
mod secret_volume;
mod server;
mod support;
mod tenants;
mod untouched;
mod validation;
#[path = "../support/validity.rs"]
mod validity;
mod warnings;
mod watch;
mod workloads;
