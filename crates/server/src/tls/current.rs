//! The serving certificate.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use otel_webhook_managed_certs::certificate::ServingCertificate;
use otel_webhook_telemetry::Metrics;

/// The certificate for new handshakes. Read without a lock.
pub struct CurrentCertificate {
    key: ArcSwapOption<CertifiedKey>,
    metrics: Arc<Metrics>,
}

impl CurrentCertificate {
    /// Starts with `certificate`. Also updates the metric of its expiry.
    pub fn new(certificate: ServingCertificate, metrics: Arc<Metrics>) -> Self {
        let current = Self::none(metrics);
        current.replace(certificate);
        current
    }

    /// Starts without a certificate: handshakes fail until there is one.
    pub fn none(metrics: Arc<Metrics>) -> Self {
        Self { key: ArcSwapOption::empty(), metrics }
    }

    /// Serves `certificate` to new handshakes; existing connections do not change.
    pub fn replace(&self, certificate: ServingCertificate) {
        self.metrics.set_certificate_expiry(certificate.not_after());
        self.key.store(Some(certificate.into_key()));
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // For every server name: there is one certificate, and clients that connect to an IP address send no name.
        self.key.load_full()
    }
}

impl fmt::Debug for CurrentCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CurrentCertificate").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tls::SelfSigned;

    #[test]
    fn the_expiry_metric_is_that_of_the_current_certificate() {
        let metrics = Arc::new(Metrics::new());
        let serving = |days: u64| {
            let lifetime = Duration::from_secs(days * 24 * 3600);
            let made = SelfSigned::living(&["localhost".to_owned()], lifetime).expect("a pair");
            made.serving().expect("a good pair")
        };
        let (one, next) = (serving(1), serving(2));
        let current = CurrentCertificate::new(one.clone(), Arc::clone(&metrics));
        let line = |certificate: &ServingCertificate| {
            format!("otel_webhook_certificate_expiry_timestamp_seconds {}\n", certificate.not_after())
        };
        assert!(metrics.encode().contains(&line(&one)));
        current.replace(next.clone());
        assert!(metrics.encode().contains(&line(&next)));
    }
}
