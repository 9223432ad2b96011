//! The name of the program, which it writes into its objects.

/// Field manager of its changes, value of the label `app.kubernetes.io/managed-by`, and part of the
/// names of CAs.
pub const PROGRAM: &str = "otel-webhook";
