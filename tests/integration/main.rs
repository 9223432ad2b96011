//! Tests of the whole, in one program.

#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` makes a value, and a test reads better without the &"
)]

mod agents;
mod backoff;
mod benches;
mod binary;
mod captured;
mod cli;
mod conversion;
mod defaulting;
mod demo;
mod docs;
mod fuzz_seeds;
mod generated;
mod instrumentation;
mod logs;
mod pure;
mod reference;
mod reinvocation;
mod routes;
mod server;
mod tenants;
mod untouched;
mod validation;
mod warnings;
mod watch;
mod workloads;
