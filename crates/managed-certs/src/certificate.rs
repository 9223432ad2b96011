//! A serving certificate: a chain with its key, checked.

use std::sync::Arc;

use crate::library;
use jiff::Timestamp;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error as RustlsError, InconsistentKeys};
use thiserror::Error;

use crate::x509::X509;

/// Why a certificate and its key cannot be served.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// The text is not PEM, or ends in the middle of a section.
    #[error("{name}: not PEM: {problem}")]
    Pem {
        /// The name of the text.
        name: String,
        /// What is wrong, without any of the content.
        problem: &'static str,
    },
    /// There is no `BEGIN CERTIFICATE` section.
    #[error("{name}: has no certificate")]
    NoCertificate {
        /// The name of the text.
        name: String,
    },
    /// The first certificate is not an X.509 certificate.
    #[error("{name}: the first certificate is not X.509: {reason}")]
    NotX509 {
        /// The name of the text.
        name: String,
        /// The error of the parser.
        reason: String,
    },
    /// There is no `BEGIN … PRIVATE KEY` section.
    #[error("{name}: has no private key (PKCS#8, SEC1 or PKCS#1)")]
    NoKey {
        /// The name of the text.
        name: String,
    },
    /// The kind of the key is not supported by the library, or the key is damaged.
    #[error("{name}: the private key cannot be used: {source}")]
    UnusableKey {
        /// The name of the text.
        name: String,
        /// The error of rustls.
        source: RustlsError,
    },
    /// The key does not match the first certificate.
    #[error("{key}: is not the private key of the first certificate of {certificate}")]
    KeyMismatch {
        /// The name of the certificate's text.
        certificate: String,
        /// The name of the key's text.
        key: String,
    },
    /// rustls cannot compare the key with the certificate.
    #[error("{name}: the first certificate cannot be used: {source}")]
    UnusableCertificate {
        /// The name of the certificate's text.
        name: String,
        /// The error of rustls.
        source: RustlsError,
    },
}

/// A PEM text with its name in errors, such as its path.
#[derive(Clone, Copy, Debug)]
pub struct NamedPem<'a> {
    /// The name, for errors only.
    pub name: &'a str,
    /// The text.
    pub pem: &'a [u8],
}

/// A certificate chain with its key, checked, so that it can be served.
#[derive(Clone, Debug)]
pub struct ServingCertificate {
    key: Arc<CertifiedKey>,
    not_after: i64,
}

impl ServingCertificate {
    /// Reads a chain (the leaf first) and its key: PKCS#8, SEC1 or PKCS#1.
    ///
    /// An expired certificate is accepted: the client decides whether to trust it, and rejecting
    /// it would keep an older one in use.
    ///
    /// # Errors
    /// If either is missing or cannot be read, or they do not match.
    pub fn from_pem(certificate: NamedPem<'_>, key: NamedPem<'_>) -> Result<Self, CertificateError> {
        let chain = read_chain(certificate)?;
        let not_after = read_not_after(certificate.name, &chain)?;
        let key_der = read_key(key)?;
        let signing_key = library::default_provider()
            .key_provider
            .load_private_key(key_der)
            .map_err(|source| CertificateError::UnusableKey { name: key.name.to_owned(), source })?;
        let certified = CertifiedKey::new(chain, signing_key);
        check_match(&certified, certificate.name, key.name)?;
        Ok(Self { key: Arc::new(certified), not_after })
    }

    /// When the leaf expires, in seconds since 1970.
    pub fn not_after(&self) -> i64 {
        self.not_after
    }

    /// The same as a date.
    pub fn expires(&self) -> String {
        Timestamp::from_second(self.not_after)
            .map_or_else(|_| self.not_after.to_string(), |time| time.to_string())
    }

    /// The chain with its key, for rustls.
    pub fn into_key(self) -> Arc<CertifiedKey> {
        self.key
    }

    /// The chain, the leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.key.cert
    }
}

fn read_chain(certificate: NamedPem<'_>) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let chain = CertificateDer::pem_slice_iter(certificate.pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| not_pem(certificate.name, &error))?;
    if chain.is_empty() {
        return Err(CertificateError::NoCertificate { name: certificate.name.to_owned() });
    }
    Ok(chain)
}

fn read_not_after(name: &str, chain: &[CertificateDer<'_>]) -> Result<i64, CertificateError> {
    let leaf = chain.first().ok_or_else(|| CertificateError::NoCertificate { name: name.to_owned() })?;
    let read = X509::read(leaf.clone().into_owned())
        .map_err(|reason| CertificateError::NotX509 { name: name.to_owned(), reason })?;
    Ok(read.not_after.as_second())
}

fn read_key(key: NamedPem<'_>) -> Result<PrivateKeyDer<'static>, CertificateError> {
    PrivateKeyDer::from_pem_slice(key.pem).map_err(|error| match error {
        pem::Error::NoItemsFound => CertificateError::NoKey { name: key.name.to_owned() },
        other => not_pem(key.name, &other),
    })
}

/// The message of the parser contains the invalid line: for a key without line breaks, the log would contain
/// the whole key.
fn not_pem(name: &str, error: &pem::Error) -> CertificateError {
    let problem = match error {
        pem::Error::MissingSectionEnd { .. } => "a section has no END line",
        pem::Error::IllegalSectionStart { .. } => {
            "a BEGIN line does not end with five dashes; are the line breaks lost, or escaped as \\n?"
        }
        pem::Error::Base64Decode(_) => "what is between BEGIN and END is not base64",
        _ => "it cannot be read",
    };
    CertificateError::Pem { name: name.to_owned(), problem }
}

fn check_match(certified: &CertifiedKey, certificate: &str, key: &str) -> Result<(), CertificateError> {
    certified.keys_match().map_err(|error| match error {
        RustlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            CertificateError::KeyMismatch { certificate: certificate.to_owned(), key: key.to_owned() }
        }
        source => CertificateError::UnusableCertificate { name: certificate.to_owned(), source },
    })
}

#[cfg(test)]
mod tests;
