//! A certificate authority and a certificate for one run of the program: first tries and tests.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use thiserror::Error;

use super::certificate::{CertificateError, NamedPem, ServingCertificate};

/// The names under which a process is reached from its own machine.
pub const DEFAULT_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

const LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// Clocks of clients may be behind ours.
const BACKDATED: Duration = Duration::from_secs(3600);

/// Why no certificate could be made.
#[derive(Debug, Error)]
pub enum SelfSignedError {
    /// A name is neither an IP address nor a DNS name.
    #[error("cannot make a certificate for {names:?}: {source}")]
    Names {
        /// The names that were asked for.
        names: Vec<String>,
        /// What is wrong with one of them.
        source: rcgen::Error,
    },
    /// Making a key or signing failed.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

/// A throw-away authority's certificate, and a leaf that it signed (ECDSA P-256, one year).
///
/// The authority's key is forgotten at once: nothing else can ever be signed by it.
#[derive(Clone)]
pub struct SelfSigned {
    /// What clients are given to trust.
    pub ca_pem: String,
    /// The leaf.
    pub certificate_pem: String,
    /// The leaf's key, PKCS#8.
    pub key_pem: String,
}

impl SelfSigned {
    /// Makes an authority and a leaf for `names`: DNS names and IP addresses.
    ///
    /// # Errors
    /// When a name is none, or the system has no randomness.
    pub fn generate(names: &[&str]) -> Result<Self, SelfSignedError> {
        let leaf_params = leaf(names)?;
        let ca_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let leaf_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let ca_params = authority();
        let ca = ca_params.self_signed(&ca_key)?;
        let certificate = leaf_params.signed_by(&leaf_key, &Issuer::new(ca_params, ca_key))?;
        Ok(Self { ca_pem: ca.pem(), certificate_pem: certificate.pem(), key_pem: leaf_key.serialize_pem() })
    }

    /// The leaf, ready to be served.
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

fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    set_common(&mut params, "otel-webhook throw-away CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn leaf(names: &[&str]) -> Result<CertificateParams, SelfSignedError> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params =
        CertificateParams::new(names.clone()).map_err(|source| SelfSignedError::Names { names, source })?;
    set_common(&mut params, "otel-webhook");
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn set_common(params: &mut CertificateParams, common_name: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(BACKDATED);
    params.not_after = epoch + now + LIFETIME;
    params.distinguished_name.push(DnType::CommonName, common_name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_for_the_default_names_can_be_served_for_a_year() {
        let made = SelfSigned::generate(&DEFAULT_NAMES).expect("a pair");
        let serving = made.serving().expect("a pair that can be served");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let left = u64::try_from(serving.not_after()).expect("after 1970") - now;
        assert!(left > LIFETIME.as_secs() - 3600, "{left}");
        assert!(left <= LIFETIME.as_secs(), "{left}");
    }

    #[test]
    fn names_are_in_the_certificate_as_what_they_are() {
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
    fn a_name_that_is_none_is_refused() {
        let error = SelfSigned::generate(&["naïve"]).err().expect("not a DNS name");
        assert!(matches!(&error, SelfSignedError::Names { names, .. } if names == &["naïve"]), "{error}");
    }
}
