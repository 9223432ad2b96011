//! What tests and benches share. No crate depends on it but for its tests.

pub mod imports;
