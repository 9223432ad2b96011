//! The name of the program, by which it marks what it writes.

/// Field manager of its changes, value of the label `app.kubernetes.io/managed-by`, and in the
/// names of certificates.
pub const PROGRAM: &str = "otel-webhook";
