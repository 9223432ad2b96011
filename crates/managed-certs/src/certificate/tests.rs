//! Tests of certificates: each supported format, and each reason to reject.

use std::time::Duration;

use super::*;
use crate::authority::{Authority, Issued};

const EC_CERTIFICATE: &[u8] = include_bytes!("../../tests/data/ec.crt");
const EC_SEC1_KEY: &[u8] = include_bytes!("../../tests/data/ec-sec1.key");
/// The end of `ec.crt`, from `openssl x509 -enddate`.
const EC_NOT_AFTER: i64 = 4_948_847_434;
const RSA_CERTIFICATE: &[u8] = include_bytes!("../../tests/data/rsa.crt");
const RSA_PKCS1_KEY: &[u8] = include_bytes!("../../tests/data/rsa-pkcs1.key");

fn parse(certificate: &[u8], key: &[u8]) -> Result<ServingCertificate, CertificateError> {
    ServingCertificate::from_pem(
        NamedPem { name: "tls.crt", pem: certificate },
        NamedPem { name: "tls.key", pem: key },
    )
}

fn refusal(certificate: &[u8], key: &[u8]) -> String {
    parse(certificate, key).expect_err("must be rejected").to_string()
}

/// The certificate of a CA, and one that it issued.
fn issued() -> (String, Issued) {
    let (now, day) = (Timestamp::now(), Duration::from_secs(24 * 3600));
    let authority = Authority::make(now, day).expect("a CA");
    let issued = authority.issue(&["localhost".to_owned()], now, day).expect("a certificate");
    (authority.certificate().pem(), issued)
}

#[test]
fn keys_of_every_format_are_accepted() {
    let (_, made) = issued();
    assert!(made.key_pem.starts_with("-----BEGIN PRIVATE KEY-----"), "PKCS#8");
    parse(made.certificate_pem.as_bytes(), made.key_pem.as_bytes()).expect("PKCS#8");
    parse(EC_CERTIFICATE, EC_SEC1_KEY).expect("SEC1");
    parse(RSA_CERTIFICATE, RSA_PKCS1_KEY).expect("PKCS#1");
}

#[test]
fn the_whole_chain_is_served_and_its_expiry_is_that_of_the_leaf() {
    let (ca_pem, _) = issued();
    let chain = [EC_CERTIFICATE, ca_pem.as_bytes()].concat();
    let certificate = parse(&chain, EC_SEC1_KEY).expect("a chain");
    assert_eq!(certificate.chain().len(), 2);
    assert_eq!(certificate.not_after(), EC_NOT_AFTER);
}

#[test]
fn a_file_without_certificate_is_rejected() {
    assert_eq!(refusal(b"", EC_SEC1_KEY), "tls.crt: has no certificate");
    assert_eq!(refusal(EC_SEC1_KEY, EC_SEC1_KEY), "tls.crt: has no certificate");
}

#[test]
fn a_file_without_key_is_rejected() {
    let expected = "tls.key: has no private key (PKCS#8, SEC1 or PKCS#1)";
    assert_eq!(refusal(EC_CERTIFICATE, b""), expected);
    assert_eq!(refusal(EC_CERTIFICATE, EC_CERTIFICATE), expected);
}

#[test]
fn half_written_files_are_rejected() {
    let half = &EC_CERTIFICATE[..EC_CERTIFICATE.len() / 2];
    assert_eq!(refusal(half, EC_SEC1_KEY), "tls.crt: not PEM: a section has no END line");
    let half = &EC_SEC1_KEY[..EC_SEC1_KEY.len() / 2];
    assert_eq!(refusal(EC_CERTIFICATE, half), "tls.key: not PEM: a section has no END line");
}

#[test]
fn a_key_that_cannot_be_read_is_not_shown() {
    const LOST: &str =
        "a BEGIN line does not end with five dashes; are the line breaks lost, or escaped as \\n?";
    let key = str::from_utf8(EC_SEC1_KEY).expect("text");
    let cut_off = key.replace('\n', "").replace("-----END EC PRIVATE KEY-----", "");
    for (damaged, problem) in [
        (key.replace('\n', "\\n"), LOST),
        (cut_off, LOST),
        (key.replacen('M', "!", 1), "what is between BEGIN and END is not base64"),
    ] {
        let error = parse(EC_CERTIFICATE, damaged.as_bytes()).expect_err("must be rejected");
        assert_eq!(error.to_string(), format!("tls.key: not PEM: {problem}"));
        let source = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(source, None, "sources are logged, too");
    }
}

#[test]
fn the_key_of_another_certificate_is_rejected() {
    assert_eq!(
        refusal(EC_CERTIFICATE, RSA_PKCS1_KEY),
        "tls.key: is not the private key of the first certificate of tls.crt"
    );
}

#[test]
fn sections_with_other_content_are_rejected() {
    let nonsense = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(refusal(nonsense, EC_SEC1_KEY).starts_with("tls.crt: the first certificate is not X.509: "));
    let nonsense = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert!(refusal(EC_CERTIFICATE, nonsense).starts_with("tls.key: the private key cannot be used: "));
}
