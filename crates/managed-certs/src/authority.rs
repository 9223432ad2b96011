//! A CA that signs certificates: created, or read with its key (ECDSA P-256).

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, date_time_ymd,
};
use thiserror::Error;

use crate::program::PROGRAM;
use crate::x509::{BACKDATED, X509};

/// Why a certificate could not be created.
#[derive(Debug, Error)]
pub enum IssueError {
    /// A name is neither an IP address nor a DNS name.
    #[error("cannot create a certificate for {names:?}: {source}")]
    Names {
        /// The requested names.
        names: Vec<String>,
        /// The error of the invalid one.
        source: rcgen::Error,
    },
    /// Creating a key or signing failed.
    #[error("cannot create a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The created certificate cannot be read.
    #[error("cannot read the created certificate: {0}")]
    Read(String),
}

/// A CA with its key.
pub struct Authority {
    certificate: X509,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, in PEM.
#[derive(Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate_pem: String,
    /// The key, PKCS#8.
    pub key_pem: String,
}

impl Authority {
    /// Creates a CA that is valid for `lifetime` from `now` on.
    ///
    /// Each CA has a unique name, so that clients cannot confuse two of them.
    ///
    /// # Errors
    /// If the system cannot provide randomness.
    pub fn make(now: Timestamp, lifetime: Duration) -> Result<Self, IssueError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::default();
        let name = format!("{PROGRAM} CA {now:.0}");
        set_common(&mut params, &name, now, end(now, lifetime));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key)?;
        let certificate = X509::read(certificate.der().clone()).map_err(IssueError::Read)?;
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// The one of `authorities` with the key `key_pem` (PKCS#8); `None` if there is none.
    pub fn read(authorities: &[X509], key_pem: &str) -> Option<Self> {
        let key = KeyPair::from_pem(key_pem).ok()?;
        let public = key.subject_public_key_info();
        let certificate = authorities.iter().find(|authority| authority.has_key(&public))?;
        let issuer = Issuer::from_ca_cert_der(certificate.der(), key).ok()?;
        Some(Self { certificate: certificate.clone(), issuer })
    }

    /// Its certificate, for CA bundles.
    pub fn certificate(&self) -> &X509 {
        &self.certificate
    }

    /// Its key in PEM, PKCS#8.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Issues a certificate for `names` (DNS names and IP addresses), which is valid for `lifetime` from
    /// `now` on, but not longer than the CA.
    ///
    /// # Errors
    /// If a name is invalid, or the system cannot provide randomness.
    pub fn issue(&self, names: &[String], now: Timestamp, lifetime: Duration) -> Result<Issued, IssueError> {
        let mut params = CertificateParams::new(names)
            .map_err(|source| IssueError::Names { names: names.to_owned(), source })?;
        let not_after = end(now, lifetime).min(self.certificate.not_after);
        set_common(&mut params, PROGRAM, now, not_after);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Issued { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }
}

/// Certificates have whole seconds only. The end is rounded up, so that no certificate is valid for less
/// than its lifetime.
fn end(now: Timestamp, lifetime: Duration) -> Timestamp {
    let end = now.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
    let begun = i64::from(end.subsec_nanosecond() > 0);
    Timestamp::from_second(end.as_second().saturating_add(begun)).unwrap_or(Timestamp::MAX)
}

fn set_common(params: &mut CertificateParams, name: &str, now: Timestamp, not_after: Timestamp) {
    let since_epoch =
        |time: Timestamp| Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default());
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + since_epoch(now).saturating_sub(BACKDATED);
    params.not_after = epoch + since_epoch(not_after);
    params.distinguished_name.push(DnType::CommonName, name);
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).expect("a time")
    }

    fn issued(authority: &Authority, lifetime: Duration) -> X509 {
        let issued = authority.issue(&["a.example".to_owned()], now(), lifetime).expect("a certificate");
        let der = pem::parse(&issued.certificate_pem).expect("PEM").into_contents();
        X509::read(der.into()).expect("a certificate")
    }

    #[test]
    fn two_thirds_of_a_lifetime_do_not_include_the_backdated_part() {
        let authority = Authority::make(now(), 3 * HOUR).expect("a CA");
        let certificate = authority.certificate();
        assert!(certificate.is_authority);
        assert_eq!(certificate.not_after, now() + 3 * HOUR);
        assert_eq!(certificate.due(), now() + 2 * HOUR);
        let begun = now() + Duration::from_millis(1);
        let authority = Authority::make(begun, HOUR).expect("a CA");
        assert_eq!(authority.certificate().not_after, now() + HOUR + Duration::from_secs(1));
    }

    #[test]
    fn a_certificate_does_not_outlive_its_ca() {
        let authority = Authority::make(now(), 3 * HOUR).expect("a CA");
        assert_eq!(issued(&authority, HOUR).not_after, now() + HOUR);
        assert_eq!(issued(&authority, 4 * HOUR).not_after, now() + 3 * HOUR);
    }

    #[test]
    fn a_ca_that_is_read_from_its_key_signs_as_before() {
        let made = Authority::make(now(), HOUR).expect("a CA");
        // Another CA of the same name: only the key differs.
        let other = Authority::make(now(), HOUR).expect("a CA");
        let known = [other.certificate().clone(), made.certificate().clone()];
        let read = Authority::read(&known, &made.key_pem()).expect("the authority");
        assert_eq!(read.certificate(), made.certificate());
        let leaf = issued(&read, HOUR);
        assert!(leaf.is_signed_by(made.certificate()));
        assert!(!leaf.is_signed_by(other.certificate()));
        assert!(!leaf.is_authority);
        assert_eq!(leaf.names, ["a.example"]);
    }

    #[test]
    fn a_key_without_its_certificate_is_no_ca() {
        let made = Authority::make(now(), HOUR).expect("a CA");
        assert!(Authority::read(&[], &made.key_pem()).is_none());
        assert!(Authority::read(&[made.certificate().clone()], "nonsense").is_none());
    }

    #[test]
    fn a_certificate_is_the_same_after_pem_and_back() {
        let made = Authority::make(now(), HOUR).expect("a CA");
        let der = pem::parse(made.certificate().pem()).expect("PEM").into_contents();
        assert_eq!(&X509::read(der.into()).expect("a certificate"), made.certificate());
    }
}
