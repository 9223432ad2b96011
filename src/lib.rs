//! A Kubernetes admission webhook that gives pods their OpenTelemetry agent.

pub mod telemetry;
pub mod tls;
