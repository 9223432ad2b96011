//! Tests of the whole, in one program.

mod conformance;
mod differences;
mod languages;
mod sanity;
mod scripts;
mod server;
mod support;
