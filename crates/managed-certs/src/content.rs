//! The content of the Secret: the state that the replicas share.
//!
//! | key | content |
//! |---|---|
//! | `tls.crt`, `tls.key` | the serving certificate of every replica, and its key |
//! | `ca.crt` | the CA bundle, the newest CA first: the desired `caBundle` |
//! | `ca.key` | the key of the newest CA, which signs |
//!
//! Nothing else is needed to continue after a crash: the step of a rotation follows from whether the
//! newest CA signed `tls.crt`, and from the CA bundles of the configurations.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::authority::{Authority, Issued};
use crate::certificate::{CertificateError, NamedPem, ServingCertificate};
use crate::x509::X509;

/// Key of the serving certificate.
pub const CERTIFICATE: &str = "tls.crt";
/// Key of its private key.
pub const KEY: &str = "tls.key";
/// Key of the CA bundle.
pub const BUNDLE: &str = "ca.crt";
/// Key of the private key of the newest CA.
pub const AUTHORITY_KEY: &str = "ca.key";

/// The time until which replaced certificates are valid. A replica without connection may serve one until
/// then, so the CA that signed it stays in the bundle until then.
pub const REPLACED_UNTIL: &str = "otel-webhook/replaced-certificates-valid-until";

/// The data of a Secret.
pub type Data = BTreeMap<String, Vec<u8>>;

/// The usable parts of the Secret; all are missing without a Secret.
#[derive(Clone, Default)]
pub struct Content {
    /// The CAs of the bundle, the newest first.
    pub bundle: Vec<X509>,
    /// The newest CA with its key.
    pub authority: Option<Arc<Authority>>,
    /// The serving certificate.
    pub leaf: Option<Leaf>,
    /// See [`REPLACED_UNTIL`].
    pub replaced_until: Option<Timestamp>,
    /// The CA of the bundle that signed the certificate. Computed once: it takes longer than everything
    /// else together.
    signer: Option<X509>,
}

/// A serving certificate.
#[derive(Clone)]
pub struct Leaf {
    /// The parsed certificate.
    pub x509: X509,
    /// The certificate with its key, checked.
    pub serving: ServingCertificate,
    issued: Issued,
}

impl Content {
    /// Reads the data of a Secret and its annotation [`REPLACED_UNTIL`]. What cannot be read is skipped,
    /// with a line for the log.
    pub fn read(data: &Data, replaced_until: Option<&str>) -> (Self, Vec<String>) {
        let mut faults = Vec::new();
        let bundle = read_bundle(data, &mut faults);
        let authority = read_authority(data, &bundle, &mut faults);
        let leaf = Leaf::read(data).map_err(|error| faults.push(error.to_string())).ok();
        let replaced_until = replaced_until.and_then(|text| text.parse().ok());
        let mut content = Self { bundle, authority, leaf, replaced_until, signer: None };
        content.find_signer();
        (content, faults)
    }

    /// The data of a Secret with this content.
    pub fn data(&self) -> Data {
        let mut data = Data::from([(BUNDLE.to_owned(), self.bundle_pem().into_bytes())]);
        if let Some(authority) = &self.authority {
            data.insert(AUTHORITY_KEY.to_owned(), authority.key_pem().into_bytes());
        }
        if let Some(leaf) = &self.leaf {
            data.insert(CERTIFICATE.to_owned(), leaf.issued.certificate_pem.clone().into_bytes());
            data.insert(KEY.to_owned(), leaf.issued.key_pem.clone().into_bytes());
        }
        data
    }

    /// The desired `caBundle`.
    pub fn bundle_pem(&self) -> String {
        self.bundle.iter().map(X509::pem).collect()
    }

    /// The newest CA, which signs.
    pub fn newest(&self) -> Option<&X509> {
        self.authority.as_ref().map(|authority| authority.certificate())
    }

    /// The CA of the bundle that signed the certificate.
    pub fn signer(&self) -> Option<&X509> {
        self.signer.as_ref()
    }

    /// Has to be called when the bundle or the certificate has changed.
    pub fn find_signer(&mut self) {
        let signed = |leaf: &Leaf| self.bundle.iter().find(|authority| leaf.x509.is_signed_by(authority));
        self.signer = self.leaf.as_ref().and_then(signed).cloned();
    }

    /// Whether everything exists and matches. Only such a content is written to the
    /// webhook configurations.
    pub fn is_whole(&self) -> bool {
        self.authority.is_some() && self.signer.is_some()
    }
}

impl Leaf {
    /// A certificate that was just issued.
    ///
    /// # Errors
    /// Never for a certificate of [`Authority::issue`].
    pub fn new(issued: Issued) -> Result<Self, CertificateError> {
        let serving = ServingCertificate::from_pem(
            NamedPem { name: CERTIFICATE, pem: issued.certificate_pem.as_bytes() },
            NamedPem { name: KEY, pem: issued.key_pem.as_bytes() },
        )?;
        let der = serving.chain().first().cloned().unwrap_or_else(|| CertificateDer::from(&[][..]));
        let x509 = X509::read(der.into_owned())
            .map_err(|reason| CertificateError::NotX509 { name: CERTIFICATE.to_owned(), reason })?;
        Ok(Self { x509, serving, issued })
    }

    fn read(data: &Data) -> Result<Self, CertificateError> {
        Self::new(Issued { certificate_pem: text(data, CERTIFICATE), key_pem: text(data, KEY) })
    }
}

fn text(data: &Data, key: &str) -> String {
    data.get(key).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

fn read_bundle(data: &Data, faults: &mut Vec<String>) -> Vec<X509> {
    let mut bundle = Vec::new();
    for read in read_certificates(data.get(BUNDLE).map_or(&[][..], Vec::as_slice)) {
        match read {
            Ok(authority) if !authority.is_authority => {
                faults.push(format!("{BUNDLE}: the certificate {} is not a CA", authority.serial));
            }
            Ok(authority) if !bundle.contains(&authority) => bundle.push(authority),
            Ok(_) => {}
            Err(problem) => faults.push(format!("{BUNDLE}: {problem}")),
        }
    }
    if bundle.is_empty() {
        faults.push(format!("{BUNDLE}: has no CA"));
    }
    bundle
}

/// The certificates of a PEM text, with an error for each section that is not a certificate.
pub fn read_certificates(text: &[u8]) -> impl Iterator<Item = Result<X509, String>> {
    CertificateDer::pem_slice_iter(text).map(|der| {
        let der = der.map_err(|_| "is not PEM".to_owned())?;
        X509::read(der).map_err(|error| format!("a certificate is not X.509: {error}"))
    })
}

fn read_authority(data: &Data, bundle: &[X509], faults: &mut Vec<String>) -> Option<Arc<Authority>> {
    // The error of the parser is not shown: it may contain the key.
    let authority = Authority::read(bundle, &text(data, AUTHORITY_KEY)).map(Arc::new);
    if authority.is_none() {
        faults.push(format!("{AUTHORITY_KEY}: is not the private key of a CA in {BUNDLE}"));
    }
    authority
}
