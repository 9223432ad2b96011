//! A certificate of a temporary CA: for `--tls-self-signed`, `demo`, `certs` and tests.

use std::time::Duration;

use jiff::Timestamp;

use otel_webhook_managed_certs::authority::{Authority, IssueError, Issued};
use otel_webhook_managed_certs::certificate::{CertificateError, NamedPem, ServingCertificate};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The certificate of a temporary CA, and a serving certificate that it signed (ECDSA P-256).
///
/// The key of the CA is discarded, so that it cannot sign other certificates.
#[derive(Clone)]
pub struct SelfSigned {
    /// The CA bundle for clients.
    pub ca_pem: String,
    /// The serving certificate.
    pub certificate_pem: String,
    /// The key of the serving certificate, PKCS#8.
    pub key_pem: String,
}

impl SelfSigned {
    /// Creates a CA and a serving certificate for `names`: DNS names and IP addresses. Both are valid for a year.
    ///
    /// # Errors
    /// If a name is invalid, or the system has no randomness.
    pub fn generate(names: &[&str]) -> Result<Self, IssueError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Self::living(&names, YEAR)
    }

    /// Creates them with another lifetime.
    ///
    /// # Errors
    /// As [`SelfSigned::generate`].
    pub fn living(names: &[String], lifetime: Duration) -> Result<Self, IssueError> {
        let now = Timestamp::now();
        let authority = Authority::make(now, lifetime)?;
        let Issued { certificate_pem, key_pem } = authority.issue(names, now, lifetime)?;
        Ok(Self { ca_pem: authority.certificate().pem(), certificate_pem, key_pem })
    }

    /// Returns the serving certificate with its key.
    ///
    /// # Errors
    /// None for a pair that [`SelfSigned::generate`] made.
    pub fn serving(&self) -> Result<ServingCertificate, CertificateError> {
        ServingCertificate::from_pem(
            NamedPem { name: "self-signed certificate", pem: self.certificate_pem.as_bytes() },
            NamedPem { name: "self-signed key", pem: self.key_pem.as_bytes() },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::DEFAULT_NAMES;

    #[test]
    fn a_pair_for_the_default_names_can_be_served_for_a_year() {
        let before = Timestamp::now().as_second();
        let made = SelfSigned::generate(&DEFAULT_NAMES).expect("a pair");
        let serving = made.serving().expect("a pair that can be served");
        let year = i64::try_from(YEAR.as_secs()).expect("a number");
        let life = serving.not_after() - before;
        assert!(life >= year && life < year + 3600, "{life}");
    }

    #[test]
    fn dns_names_and_ip_addresses_are_in_the_certificate() {
        let made = SelfSigned::generate(&DEFAULT_NAMES).expect("a pair").serving().expect("a pair");
        let (_, leaf) = x509_parser::parse_x509_certificate(&made.chain()[0]).expect("a certificate");
        let names = leaf.subject_alternative_name().expect("well formed").expect("there").value;
        let names: Vec<String> = names.general_names.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names[0].contains("localhost") && names[0].starts_with("DNS"), "{names:?}");
        assert!(names[1].starts_with("IP") && names[2].starts_with("IP"), "{names:?}");
    }

    #[test]
    fn two_pairs_have_nothing_in_common() {
        let (one, other) =
            (SelfSigned::generate(&["a"]).expect("one"), SelfSigned::generate(&["a"]).expect("other"));
        assert_ne!(one.ca_pem, other.ca_pem);
        assert_ne!(one.key_pem, other.key_pem);
    }

    #[test]
    fn an_invalid_name_is_rejected() {
        let error = SelfSigned::generate(&["naïve"]).err().expect("not a DNS name");
        assert!(matches!(&error, IssueError::Names { names, .. } if names == &["naïve"]), "{error}");
    }
}
