//! Whether an API server would trust a certificate: what it checks when it
//! calls a webhook, done beforehand.
//!
//! An API server is written in Go, which takes a leaf that stands in the bundle
//! itself as trusted, and minds when an authority expires. rustls does neither,
//! so both are done here.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use rustls::RootCertStore;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use thiserror::Error;

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
    /// One of them is not an X.509 certificate.
    #[error("certificate {number} is not X.509: {reason}")]
    NotX509 {
        /// Which one, from one on.
        number: usize,
        /// What the parser says.
        reason: String,
    },
}

/// Why an API server would not trust a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Distrust {
    /// It is over.
    #[error("the certificate expired at {not_after}")]
    Expired {
        /// Its last moment.
        not_after: Timestamp,
    },
    /// It has not begun.
    #[error("the certificate is valid from {not_before} on only")]
    NotYetValid {
        /// Its first moment.
        not_before: Timestamp,
    },
    /// It is for other names.
    #[error("the certificate is not for {wanted}; it is for {}", Listed(.names))]
    OtherName {
        /// The name that the API server calls.
        wanted: String,
        /// The names that it has.
        names: Vec<String>,
    },
    /// Its authority is over.
    #[error("the authority that signed the certificate has expired")]
    AuthorityExpired,
    /// It was signed by another authority.
    #[error("no authority of the bundle signed the certificate")]
    OtherAuthority,
    /// It cannot be a server's, for another reason.
    #[error("the certificate cannot be verified: {0}")]
    Unfit(String),
}

/// The certificates that a server is trusted by, such as a `caBundle`.
#[derive(Clone, Debug)]
pub struct Bundle(Vec<X509>);

/// A chain as a server shows it.
#[derive(Clone, Debug)]
pub struct ShownChain {
    chain: Vec<CertificateDer<'static>>,
    /// What the first of them says.
    pub leaf: X509,
}

impl Bundle {
    /// Reads every certificate of a text.
    ///
    /// # Errors
    /// When there is none, or one cannot be read.
    pub fn from_pem(text: &[u8]) -> Result<Self, UnreadableCertificates> {
        let numbered = read(text)?.into_iter().zip(1..);
        numbered.map(|(certificate, number)| parse(certificate, number)).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a server that shows this chain is trusted when it is called by `name` at `now`.
    ///
    /// # Errors
    /// The first reason why not.
    pub fn judge(&self, shown: &ShownChain, name: &str, now: Timestamp) -> Result<(), Distrust> {
        let X509 { not_before, not_after, names, .. } = &shown.leaf;
        if now > *not_after {
            return Err(Distrust::Expired { not_after: *not_after });
        }
        if now < *not_before {
            return Err(Distrust::NotYetValid { not_before: *not_before });
        }
        let unfit = |error: rustls::Error| Distrust::Unfit(error.to_string());
        let leaf = ParsedCertificate::try_from(&shown.chain[0]).map_err(unfit)?;
        let other_name = || Distrust::OtherName { wanted: name.to_owned(), names: names.clone() };
        let server_name = ServerName::try_from(name).map_err(|_| other_name())?;
        verify_server_name(&leaf, &server_name).map_err(|_| other_name())?;
        if self.0.iter().any(|trusted| trusted.der() == shown.leaf.der()) {
            return Ok(());
        }
        let is_valid = |authority: &&X509| authority.not_before <= now && now <= authority.not_after;
        let verify = |authorities: &mut dyn Iterator<Item = &X509>| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(authorities.map(|authority| authority.der().clone()));
            let seconds = u64::try_from(now.as_second()).unwrap_or_default();
            let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
            let algorithms = ring::default_provider().signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&leaf, &roots, &shown.chain[1..], now, algorithms)
        };
        match verify(&mut self.0.iter().filter(is_valid)) {
            Ok(()) => Ok(()),
            Err(error) if is_of_another(&error) => {
                let by_any = verify(&mut self.0.iter());
                Err(if by_any.is_ok() { Distrust::AuthorityExpired } else { Distrust::OtherAuthority })
            }
            Err(error) => Err(unfit(error)),
        }
    }
}

/// Whether none of the authorities signed the chain; another one may have the name of one of them.
fn is_of_another(error: &rustls::Error) -> bool {
    use rustls::CertificateError::{BadSignature, UnknownIssuer};
    matches!(error, rustls::Error::InvalidCertificate(UnknownIssuer | BadSignature))
}

impl ShownChain {
    /// Reads what the leaf of a chain says.
    ///
    /// # Errors
    /// When there is no leaf, or it is not X.509.
    pub fn new(chain: Vec<CertificateDer<'static>>) -> Result<Self, UnreadableCertificates> {
        let leaf = chain.first().ok_or(UnreadableCertificates::None)?;
        let leaf = parse(leaf.clone(), 1)?;
        Ok(Self { chain, leaf })
    }

    /// Reads a chain, the leaf first.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn from_pem(text: &[u8]) -> Result<Self, UnreadableCertificates> {
        Self::new(read(text)?)
    }

    /// Whether less than a tenth of its life is left at `now`: who renews it is late by then.
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

/// Names, parted by commas.
struct Listed<'n>(&'n [String]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("no name") } else { f.write_str(&self.0.join(", ")) }
    }
}

#[cfg(test)]
mod tests;
