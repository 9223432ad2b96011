//! A Kubernetes admission webhook that gives pods their OpenTelemetry agent.
