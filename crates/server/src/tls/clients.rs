//! Client certificates: a handshake succeeds only with a certificate of the client CA, and with an allowed name.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use otel_webhook_managed_certs::library;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};
use thiserror::Error as ThisError;
use tracing::debug;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

/// Why a CA bundle for client certificates cannot be used. The content is not repeated, since a file may contain a
/// key by mistake.
#[derive(Debug, ThisError)]
pub enum ClientCaError {
    /// The text is not PEM.
    #[error("{name}: not PEM, or damaged")]
    Pem {
        /// The name of the text.
        name: String,
    },
    /// There is no `BEGIN CERTIFICATE` section.
    #[error("{name}: has no certificate")]
    NoCertificate {
        /// The name of the text.
        name: String,
    },
    /// A certificate cannot be used.
    #[error("{name}: certificate {number} cannot be used as a CA: {source}")]
    Unusable {
        /// The name of the text.
        name: String,
        /// Which certificate, from 1.
        number: usize,
        /// The error of rustls.
        source: Error,
    },
    /// rustls makes no verifier of the bundle.
    #[error("{name}: cannot be used: {source}")]
    Verifier {
        /// The name of the text.
        name: String,
        /// The error of rustls.
        source: rustls::server::VerifierBuilderError,
    },
}

/// The CAs that verify client certificates.
#[derive(Clone, Debug)]
pub struct ClientCa(Arc<dyn ClientCertVerifier>);

impl ClientCa {
    /// Reads a CA bundle; `name` is its name in errors.
    ///
    /// # Errors
    /// If there is no certificate in it, or one that cannot be used.
    pub fn from_pem(name: &str, pem: &[u8]) -> Result<Self, ClientCaError> {
        let name = || name.to_owned();
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|_| ClientCaError::Pem { name: name() })?;
        if certificates.is_empty() {
            return Err(ClientCaError::NoCertificate { name: name() });
        }
        let mut roots = RootCertStore::empty();
        for (number, certificate) in (1..).zip(certificates) {
            let unusable = |source| ClientCaError::Unusable { name: name(), number, source };
            roots.add(certificate).map_err(unusable)?;
        }
        let provider = Arc::new(library::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        verifier.map(Self).map_err(|source| ClientCaError::Verifier { name: name(), source })
    }
}

/// The clients that may connect. The CA is replaced while connections continue.
pub struct CurrentClients {
    ca: ArcSwap<ClientCa>,
    names: Vec<String>,
}

impl CurrentClients {
    /// Accepts clients of `ca`; only those with one of `names`, unless there are none.
    pub fn new(ca: ClientCa, names: Vec<String>) -> Self {
        Self { ca: ArcSwap::from_pointee(ca), names }
    }

    /// Verifies new handshakes by `ca`; existing connections do not change.
    pub fn replace(&self, ca: ClientCa) {
        self.ca.store(Arc::new(ca));
    }

    fn verify_name(&self, leaf: &CertificateDer<'_>) -> Result<(), Error> {
        if self.names.is_empty() {
            return Ok(());
        }
        let names = names(leaf);
        if names.iter().any(|name| self.names.contains(name)) {
            return Ok(());
        }
        // Here, since the error of the handshake can say no names.
        debug!(?names, allowed = ?self.names, "the client certificate has none of the names of --client-name");
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }
}

/// Returns the common names, DNS names and URIs of a certificate.
fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, parsed)) = parse_x509_certificate(certificate) else { return Vec::new() };
    let common = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let mut names: Vec<String> = common.map(str::to_owned).collect();
    let alternative = parsed.subject_alternative_name().ok().flatten();
    let alternative = alternative.iter().flat_map(|extension| &extension.value.general_names);
    names.extend(alternative.filter_map(|name| match name {
        GeneralName::DNSName(name) | GeneralName::URI(name) => Some((*name).to_owned()),
        _ => None,
    }));
    names
}

impl ClientCertVerifier for CurrentClients {
    /// None: the API server has one certificate for this webhook, and would show none if it had to match a hint.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.ca.load().0.verify_client_cert(leaf, intermediates, now)?;
        self.verify_name(leaf)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.ca.load().0.verify_tls12_signature(message, leaf, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.ca.load().0.verify_tls13_signature(message, leaf, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.ca.load().0.supported_verify_schemes()
    }
}

impl fmt::Debug for CurrentClients {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CurrentClients").field("names", &self.names).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_that_cannot_be_used_is_an_error_without_its_content() {
        let message = |pem: &str| ClientCa::from_pem("ca.crt", pem.as_bytes()).expect_err(pem).to_string();
        assert_eq!(message(""), "ca.crt: has no certificate");
        let section =
            |content: &str| format!("-----BEGIN CERTIFICATE-----\n{content}\n-----END CERTIFICATE-----\n");
        assert_eq!(message(&section("geheim!")), "ca.crt: not PEM, or damaged");
        let unusable = message(&section("bm8="));
        assert!(unusable.starts_with("ca.crt: certificate 1 cannot be used as a CA: "), "{unusable}");
    }
}
