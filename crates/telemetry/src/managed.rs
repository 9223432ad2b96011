//! Metrics of managed certificates. Those of an object only exist with managed certificates: otherwise their zeros
//! would raise alerts.

use std::fmt;
use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The failed operation, as the label `operation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ManagedOperation {
    /// The Secret could not be read or written.
    Secret,
    /// A webhook configuration could not be read or patched.
    Configuration,
    /// A watch on one of them ended with an error.
    Watch,
}

impl ManagedOperation {
    const ALL: [Self; 3] = [Self::Secret, Self::Configuration, Self::Watch];
}

impl EncodeLabelValue for ManagedOperation {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        let value = match self {
            Self::Secret => "Secret",
            Self::Configuration => "Configuration",
            Self::Watch => "Watch",
        };
        value.encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    operation: ManagedOperation,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SecretLabels {
    secret: String,
}

/// Names come from the flags, so the number of series is bounded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConfigurationLabels {
    kind: String,
    name: String,
}

/// See the module.
#[derive(Debug, Default)]
pub struct ManagedMetrics {
    ca_expiry: Family<SecretLabels, Gauge<i64, AtomicI64>>,
    ca_bundle_current: Family<ConfigurationLabels, Gauge<i64, AtomicI64>>,
    repairs: Counter,
    failures: Family<OperationLabels, Counter>,
}

impl ManagedMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "otel_webhook_ca_expiry_timestamp_seconds",
            "Unix time at which the managed CA expires",
            self.ca_expiry.clone(),
        );
        registry.register(
            "otel_webhook_ca_bundle_current",
            "1 if caBundle of a webhook configuration is the managed CA bundle, 0 if it is not",
            self.ca_bundle_current.clone(),
        );
        registry.register(
            "otel_webhook_ca_bundle_repairs",
            "Changes of caBundle by other clients that were reverted",
            self.repairs.clone(),
        );
        registry.register(
            "otel_webhook_managed_certificate_failures",
            "Failed attempts to read, watch or update the Secret or a webhook configuration",
            self.failures.clone(),
        );
    }

    /// Exposes failures as zero, before the first.
    pub fn expect(&self) {
        for operation in ManagedOperation::ALL {
            drop(self.failures.get_or_create(&OperationLabels { operation }));
        }
    }

    /// Counts one failure.
    pub fn count_failure(&self, operation: ManagedOperation) {
        self.failures.get_or_create(&OperationLabels { operation }).inc();
    }

    /// Counts one `caBundle` that was restored.
    pub fn count_repair(&self) {
        self.repairs.inc();
    }

    /// Sets the Unix time at which the CA in a Secret (`namespace/name`) expires.
    pub fn set_ca_expiry(&self, secret: &str, seconds: i64) {
        self.ca_expiry.get_or_create(&SecretLabels { secret: secret.to_owned() }).set(seconds);
    }

    /// Sets whether a configuration has the managed CA bundle; none if the configuration does not exist.
    pub fn set_ca_bundle_current(&self, kind: &str, name: &str, is_current: Option<bool>) {
        let labels = ConfigurationLabels { kind: kind.to_owned(), name: name.to_owned() };
        match is_current {
            Some(is_current) => {
                self.ca_bundle_current.get_or_create(&labels).set(is_current.into());
            }
            None => {
                self.ca_bundle_current.remove(&labels);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;

    #[test]
    fn metrics_of_managed_certificates_exist_only_with_them() {
        let metrics = Metrics::new();
        let lines = |text: &str| metrics.encode().lines().any(|line| line == text);
        let said = |name: &str| metrics.encode().lines().any(|line| line.starts_with(name));
        for name in [
            "otel_webhook_ca_expiry_timestamp_seconds",
            "otel_webhook_ca_bundle_current",
            "otel_webhook_managed_certificate_failures_total",
        ] {
            assert!(!said(name), "{name}");
        }
        metrics.managed.expect();
        metrics.managed.count_failure(ManagedOperation::Watch);
        metrics.managed.count_repair();
        metrics.managed.set_ca_expiry("a/b", 4_102_444_800);
        metrics.managed.set_ca_bundle_current("MutatingWebhookConfiguration", "one", Some(true));
        for line in [
            "otel_webhook_managed_certificate_failures_total{operation=\"Secret\"} 0",
            "otel_webhook_managed_certificate_failures_total{operation=\"Watch\"} 1",
            "otel_webhook_ca_bundle_repairs_total 1",
            "otel_webhook_ca_expiry_timestamp_seconds{secret=\"a/b\"} 4102444800",
            "otel_webhook_ca_bundle_current{kind=\"MutatingWebhookConfiguration\",name=\"one\"} 1",
        ] {
            assert!(lines(line), "{line} is not in\n{}", metrics.encode());
        }
        metrics.managed.set_ca_bundle_current("MutatingWebhookConfiguration", "one", None);
        assert!(!said("otel_webhook_ca_bundle_current"), "it does not exist");
    }
}
