//! A Kubernetes admission webhook that gives pods their OpenTelemetry agent.

pub mod api;
pub mod inject;
pub mod store;
