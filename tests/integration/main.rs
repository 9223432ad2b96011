//! Tests of the whole, in one program.

mod conformance;
mod sanity;
mod scripts;
mod server;
mod support;
