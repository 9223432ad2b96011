//! Tests against a real control plane.
fn main() {}
