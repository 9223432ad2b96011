//! A Kubernetes admission webhook that gives pods their OpenTelemetry agent.

pub mod admission;
pub mod cli;
pub mod manifest;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod tls;
