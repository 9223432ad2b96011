//! Verifies a certificate as an API server does when it calls a webhook.
//!
//! API servers use Go's verification, which trusts a leaf that is itself in the bundle, and checks the expiry of
//! CAs. rustls does neither, so both are implemented here.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use thiserror::Error;

use otel_webhook_managed_certs::library;
use otel_webhook_managed_certs::x509::X509;

/// Why certificates cannot be read.
#[derive(Debug, Error)]
pub enum UnreadableCertificates {
    /// The text is not PEM.
    #[error("not PEM: {0}")]
    Pem(pem::Error),
    /// There is no `BEGIN CERTIFICATE` section.
    #[error("has no certificate")]
    None,
    /// A certificate is not X.509.
    #[error("certificate {number} is not X.509: {reason}")]
    NotX509 {
        /// Its number, from 1.
        number: usize,
        /// The error of the parser.
        reason: String,
    },
}

/// Why an API server would not trust a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Distrust {
    /// It has expired.
    #[error("the certificate expired at {not_after}")]
    Expired {
        /// The end of its validity.
        not_after: Timestamp,
    },
    /// It is not valid yet.
    #[error("the certificate is not valid before {not_before}")]
    NotYetValid {
        /// The start of its validity.
        not_before: Timestamp,
    },
    /// It is for other names.
    #[error("the certificate is not valid for {wanted}; it is valid for {}", Listed(.names))]
    OtherName {
        /// The name that the API server uses.
        wanted: String,
        /// The names in the certificate.
        names: Vec<String>,
    },
    /// Its CA has expired.
    #[error("the CA that signed the certificate has expired")]
    CaExpired,
    /// It was signed by another CA.
    #[error("no CA of the bundle signed the certificate")]
    OtherCa,
    /// It is not a valid server certificate, for another reason.
    #[error("the certificate cannot be verified: {0}")]
    Unfit(String),
}

/// A CA bundle, such as `caBundle`.
#[derive(Clone, Debug)]
pub struct Bundle(Vec<X509>);

/// The certificate chain of a server.
#[derive(Clone, Debug)]
pub struct ShownChain {
    chain: Vec<CertificateDer<'static>>,
    /// The parsed leaf.
    pub leaf: X509,
}

impl Bundle {
    /// Reads every certificate of a text.
    ///
    /// # Errors
    /// If there is none, or one cannot be read.
    pub fn from_pem(text: &[u8]) -> Result<Self, UnreadableCertificates> {
        let numbered = read(text)?.into_iter().zip(1..);
        numbered.map(|(certificate, number)| parse(certificate, number)).collect::<Result<_, _>>().map(Self)
    }

    /// Verifies the chain of a server that is called by `name` at `now`.
    ///
    /// # Errors
    /// The first reason not to trust it.
    pub fn verify(&self, shown: &ShownChain, name: &str, now: Timestamp) -> Result<(), Distrust> {
        let X509 { not_before, not_after, .. } = &shown.leaf;
        if now > *not_after {
            return Err(Distrust::Expired { not_after: *not_after });
        }
        if now < *not_before {
            return Err(Distrust::NotYetValid { not_before: *not_before });
        }
        let leaf = shown.verify_name(name)?;
        if self.0.iter().any(|trusted| trusted.der() == shown.leaf.der()) {
            return Ok(());
        }
        let is_valid = |ca: &&X509| ca.not_before <= now && now <= ca.not_after;
        let verify = |authorities: &mut dyn Iterator<Item = &X509>| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(authorities.map(|ca| ca.der().clone()));
            let seconds = u64::try_from(now.as_second()).unwrap_or_default();
            let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
            let algorithms = library::default_provider().signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&leaf, &roots, &shown.chain[1..], now, algorithms)
        };
        match verify(&mut self.0.iter().filter(is_valid)) {
            Ok(()) => Ok(()),
            Err(error) if is_of_another(&error) => {
                let by_any = verify(&mut self.0.iter());
                Err(if by_any.is_ok() { Distrust::CaExpired } else { Distrust::OtherCa })
            }
            Err(error) => Err(Distrust::Unfit(error.to_string())),
        }
    }
}

/// Returns whether none of the CAs signed the chain. The names of CAs are not unique.
fn is_of_another(error: &rustls::Error) -> bool {
    use rustls::CertificateError::{BadSignature, UnknownIssuer};
    matches!(error, rustls::Error::InvalidCertificate(UnknownIssuer | BadSignature))
}

impl ShownChain {
    /// Parses the leaf of a chain.
    ///
    /// # Errors
    /// If there is no leaf, or it is not X.509.
    pub fn new(chain: Vec<CertificateDer<'static>>) -> Result<Self, UnreadableCertificates> {
        let leaf = chain.first().ok_or(UnreadableCertificates::None)?;
        let leaf = parse(leaf.clone(), 1)?;
        Ok(Self { chain, leaf })
    }

    /// Reads a chain from PEM, the leaf first.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn from_pem(text: &[u8]) -> Result<Self, UnreadableCertificates> {
        Self::new(read(text)?)
    }

    /// Verifies that the leaf is for a name, and returns it.
    ///
    /// # Errors
    /// If it is for other names, or no server certificate.
    pub fn verify_name(&self, name: &str) -> Result<ParsedCertificate<'_>, Distrust> {
        let unfit = |error: rustls::Error| Distrust::Unfit(error.to_string());
        let leaf = ParsedCertificate::try_from(&self.chain[0]).map_err(unfit)?;
        let other_name = || Distrust::OtherName { wanted: name.to_owned(), names: self.leaf.names.clone() };
        let server_name = ServerName::try_from(name).map_err(|_| other_name())?;
        verify_server_name(&leaf, &server_name).map_err(|_| other_name())?;
        Ok(leaf)
    }

    /// Returns whether less than a tenth of its lifetime is left at `now`: it should have been renewed before.
    pub fn is_nearly_over(&self, now: Timestamp) -> bool {
        let X509 { not_before, not_after, .. } = &self.leaf;
        not_after.duration_since(now) < not_after.duration_since(*not_before) / 10
    }
}

fn read(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, UnreadableCertificates> {
    let read = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>();
    let certificates = read.map_err(UnreadableCertificates::Pem)?;
    if certificates.is_empty() { Err(UnreadableCertificates::None) } else { Ok(certificates) }
}

fn parse(certificate: CertificateDer<'static>, number: usize) -> Result<X509, UnreadableCertificates> {
    X509::read(certificate).map_err(|reason| UnreadableCertificates::NotX509 { number, reason })
}

/// Comma-separated names.
struct Listed<'n>(&'n [String]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("no name") } else { f.write_str(&self.0.join(", ")) }
    }
}

#[cfg(test)]
mod tests;
