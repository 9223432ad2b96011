//! Tests of the whole, in one program.

#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` makes a value, and a test reads better without the &"
)]

mod binary;
#[path = "../support/bounded.rs"]
mod bounded;
#[path = "../support/bounded_pod.rs"]
mod bounded_pod;
mod bounded_pods;
mod broken;
#[path = "../support/broken.rs"]
mod broken_fields;
mod captured;
mod cli;
mod conformance;
mod defaulting;
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
#[path = "../support/namespace_model.rs"]
mod namespace_model;
mod properties;
#[path = "../support/quota_model.rs"]
mod quota_model;
mod reasons;
mod reinvocation;
#[path = "../support/review.rs"]
mod review;
mod sanity;
mod scripts;
#[path = "../support/secret_volume.rs"]
mod secret_volume;
mod server;
#[path = "../support/sidecar_model.rs"]
mod sidecar_model;
mod support;
mod tenants;
mod untouched;
mod validation;
#[path = "../support/validity.rs"]
mod validity;
mod warnings;
mod watch;
mod workloads;
