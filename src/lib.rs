//! A Kubernetes admission webhook that gives pods their OpenTelemetry agent.

pub mod admission;
pub mod server;
pub mod telemetry;
pub mod tls;
