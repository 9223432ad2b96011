//! TLS for the webhook port: its configuration and its serving certificate.
//!
//! ```text
//! files ───────┐
//! managed ─────┼─> ServingCertificate ──replace──> CurrentCertificate <──resolve── each handshake
//! self_signed ─┘
//! files ──> ClientCa ──replace──> CurrentClients <──verify── each handshake, with --client-ca
//! ```
//! The crate `managed-certs` issues the certificates of the last two, and makes the decisions of the second.
//!
//! A certificate is checked when it is parsed, so that [`CurrentCertificate`] only ever holds certificates that can
//! be served. Existing connections keep their certificate.

mod clients;
mod current;
mod files;
pub mod managed;
mod names;
mod self_signed;
pub mod trust;

pub use clients::{ClientCa, ClientCaError, CurrentClients};
pub use current::CurrentCertificate;
pub use files::{Files, FilesError, INTERVAL};
pub use names::{DEFAULT_NAMES, service_names};
pub use self_signed::SelfSigned;

use std::sync::Arc;

use otel_webhook_managed_certs::library;
use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};

/// The only supported protocol. API servers use it for webhooks behind a Service, and HTTP/2 would add attack
/// surface. See docs/adr/0008-http-1-and-long-idle-timeouts.md.
const ALPN: &[u8] = b"http/1.1";

/// Returns a configuration of TLS 1.2 and 1.3, without client certificates. The handshake rejects clients
/// that do not support HTTP/1.1.
///
/// Sessions are resumed by tickets, so that the server keeps no state for them.
///
/// # Errors
/// If the library cannot generate keys for tickets, because the system has no randomness.
pub fn server_config(resolver: Arc<dyn ResolvesServerCert>) -> Result<ServerConfig, rustls::Error> {
    let mut config = config(resolver, WebPkiClientVerifier::no_client_auth())?;
    config.ticketer = library::Ticketer::new()?;
    Ok(config)
}

/// Returns the same configuration for clients that `clients` accepts.
///
/// Sessions are not resumed: the certificate of a resumed session would not be verified again, although it may have
/// expired, or the CA may have changed.
///
/// # Errors
/// If the library speaks neither.
pub fn mutual_config(
    resolver: Arc<dyn ResolvesServerCert>,
    clients: Arc<CurrentClients>,
) -> Result<ServerConfig, rustls::Error> {
    let mut config = config(resolver, clients)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn config(
    resolver: Arc<dyn ResolvesServerCert>,
    clients: Arc<dyn ClientCertVerifier>,
) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(library::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(resolver);
    config.alpn_protocols = vec![ALPN.to_vec()];
    // What rustls itself checks of suites, groups and protocol versions.
    assert!(config.fips() || cfg!(not(feature = "fips")), "a program for FIPS serves by nothing else");
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use otel_webhook_telemetry::Metrics;

    #[test]
    fn sessions_are_resumed_by_tickets() {
        let serving = SelfSigned::generate(&DEFAULT_NAMES).expect("a pair").serving().expect("a good pair");
        let current = CurrentCertificate::new(serving, Arc::new(Metrics::new()));
        let config = server_config(Arc::new(current)).expect("a configuration");
        // rustls also resumes without tickets, but from a bounded cache.
        assert!(config.ticketer.enabled());
        assert_eq!(config.alpn_protocols, [b"http/1.1"]);
    }
}
