//! Certificates of Collectors and of agents.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A CA of the test.
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    /// One of this name.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// Its certificate.
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// A certificate of a server with this name.
    pub fn server(&self, name: &str) -> Pair {
        self.issue(name, ExtendedKeyUsagePurpose::ServerAuth, SystemTime::now() + DAY)
    }

    /// One that expired yesterday.
    pub fn expired(&self, name: &str) -> Pair {
        self.issue(name, ExtendedKeyUsagePurpose::ServerAuth, SystemTime::now() - DAY)
    }

    /// A certificate of a client.
    pub fn client(&self) -> Pair {
        self.issue("agent", ExtendedKeyUsagePurpose::ClientAuth, SystemTime::now() + DAY)
    }

    fn issue(&self, name: &str, usage: ExtendedKeyUsagePurpose, end: SystemTime) -> Pair {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        params.not_before = (end - 10 * DAY).into();
        params.not_after = end.into();
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Pair { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}
