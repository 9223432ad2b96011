//! TLS for the webhook port: how connections are encrypted, and which certificate is shown.
//!
//! ```text
//! files ───────┐
//! managed ─────┼─> ServingCertificate ──replace──> CurrentCertificate <──resolve── each handshake
//! self_signed ─┘
//! ```
//! The crate `managed-certs` makes the certificates of the last two, and decides what the second does.
//!
//! A certificate is checked when it is parsed, so that what can be replaced into
//! [`CurrentCertificate`] can always be served. Connections that exist keep the certificate that
//! they began with.

mod current;
mod files;
pub mod managed;
mod names;
mod self_signed;
pub mod trust;

pub use current::CurrentCertificate;
pub use files::{CertificateFiles, FilesError};
pub use names::{DEFAULT_NAMES, service_names};
pub use self_signed::SelfSigned;

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::ResolvesServerCert;
use rustls::version::{TLS12, TLS13};

/// The only protocol that is spoken. The API server offers nothing else to a webhook behind a
/// Service, and HTTP/2 would only bring its attacks.
const ALPN: &[u8] = b"http/1.1";

/// TLS 1.2 and 1.3 by ring, without client certificates; a client that insists on another protocol
/// than HTTP/1.1 is refused in the handshake.
///
/// Sessions are resumed by tickets, so that nothing is kept for a client that does not come back.
///
/// # Errors
/// When ring cannot make keys for tickets, because the system has no randomness.
pub fn server_config(resolver: Arc<dyn ResolvesServerCert>) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.ticketer = ring::Ticketer::new()?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Metrics;

    #[test]
    fn sessions_are_kept_by_clients_in_tickets() {
        let serving = SelfSigned::generate(&DEFAULT_NAMES).expect("a pair").serving().expect("a good pair");
        let current = CurrentCertificate::new(serving, Arc::new(Metrics::new()));
        let config = server_config(Arc::new(current)).expect("a configuration");
        // rustls resumes without tickets too, from a cache that sessions of other clients push out.
        assert!(config.ticketer.enabled());
        assert_eq!(config.alpn_protocols, [b"http/1.1"]);
    }
}
