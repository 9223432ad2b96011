//! Tests of the whole, in one program.

mod server;
