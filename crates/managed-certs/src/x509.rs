//! A parsed certificate, and which CA signed it.

use std::net::IpAddr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

/// How far certificates are backdated, since the clock of a client may be behind.
pub const BACKDATED: Duration = Duration::from_secs(3600);

/// A parsed certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct X509 {
    der: CertificateDer<'static>,
    /// The serial number in hexadecimal, as other tools show it.
    pub serial: String,
    /// The begin of its validity, some time before it was created.
    pub not_before: Timestamp,
    /// When it expires.
    pub not_after: Timestamp,
    /// Its DNS names, in lower case, and IP addresses.
    pub names: Vec<String>,
    /// Whether it is a CA.
    pub is_authority: bool,
}

impl X509 {
    /// Reads a certificate.
    ///
    /// # Errors
    /// The error of the parser.
    pub fn read(der: CertificateDer<'static>) -> Result<Self, String> {
        let (_, parsed) = parse_x509_certificate(&der).map_err(|error| error.to_string())?;
        let validity = parsed.validity();
        let time = |seconds| Timestamp::from_second(seconds).map_err(|error| error.to_string());
        let read = Self {
            serial: parsed.raw_serial_as_string(),
            not_before: time(validity.not_before.timestamp())?,
            not_after: time(validity.not_after.timestamp())?,
            names: names(&parsed),
            is_authority: parsed.is_ca(),
            der: CertificateDer::from(&[][..]),
        };
        Ok(Self { der, ..read })
    }

    /// The certificate in DER.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// The certificate in PEM.
    pub fn pem(&self) -> String {
        let text = pem::Pem::new("CERTIFICATE", self.der.to_vec());
        pem::encode_config(&text, pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF))
    }

    /// Whether `authority` signed it.
    pub fn is_signed_by(&self, authority: &Self) -> bool {
        let (Ok((_, own)), Ok((_, other))) =
            (parse_x509_certificate(&self.der), parse_x509_certificate(&authority.der))
        else {
            return false;
        };
        authority.is_authority
            && own.issuer() == other.subject()
            && own.verify_signature(Some(other.public_key())).is_ok()
    }

    /// Whether this is its public key, as a `SubjectPublicKeyInfo`.
    pub fn has_key(&self, subject_public_key_info: &[u8]) -> bool {
        parse_x509_certificate(&self.der)
            .is_ok_and(|(_, parsed)| parsed.public_key().raw == subject_public_key_info)
    }

    /// Whether it has expired.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.not_after <= now
    }

    /// When two thirds of its lifetime are over and it has to be replaced. The lifetime is read from the
    /// certificate itself, so all replicas agree, even if they are configured with other lifetimes.
    pub fn due(&self) -> Timestamp {
        let life = self.not_after.duration_since(self.made());
        self.made() + life / 3 * 2
    }

    /// When it was created.
    fn made(&self) -> Timestamp {
        let backdated = SignedDuration::try_from(BACKDATED).unwrap_or_default();
        (self.not_before + backdated).min(self.not_after)
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.iter().flat_map(|extension| &extension.value.general_names);
    names.filter_map(name).collect()
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}
