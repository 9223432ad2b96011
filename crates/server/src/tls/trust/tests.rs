//! Tests of each reason not to trust a certificate, and of the two ways to trust one.

use jiff::{SignedDuration, Timestamp};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd};

use super::{Bundle, Distrust, ShownChain};
use crate::tls::SelfSigned;

const NAME: &str = "otel-webhook.otel-webhook.svc";

fn pair() -> (Bundle, ShownChain) {
    let made = SelfSigned::generate(&[NAME, "127.0.0.1", "::1"]).expect("a pair");
    let bundle = Bundle::from_pem(made.ca_pem.as_bytes()).expect("a CA");
    (bundle, ShownChain::from_pem(made.certificate_pem.as_bytes()).expect("a leaf"))
}

fn now() -> Timestamp {
    Timestamp::now()
}

#[test]
fn a_leaf_of_a_ca_in_the_bundle_is_trusted_for_each_of_its_names() {
    let (bundle, shown) = pair();
    for name in [NAME, "127.0.0.1", "::1"] {
        assert_eq!(bundle.verify(&shown, name, now()), Ok(()), "{name}");
    }
    assert_eq!(shown.leaf.names, [NAME, "127.0.0.1", "::1"]);
    let (other, _) = pair();
    let both = Bundle([other.0, bundle.0].concat());
    assert_eq!(both.verify(&shown, NAME, now()), Ok(()));
}

#[test]
fn another_ca_and_another_name_are_not_trusted() {
    let ((_, shown), (other, _)) = (pair(), pair());
    assert_eq!(other.verify(&shown, NAME, now()), Err(Distrust::OtherCa));
    let found = other.verify(&shown, "webhook.other.svc", now()).expect_err("another name");
    let text = "the certificate is not valid for webhook.other.svc; it is valid for otel-webhook.otel-webhook.svc, \
                127.0.0.1, ::1";
    assert_eq!(found.to_string(), text);
}

#[test]
fn a_certificate_is_trusted_while_it_is_valid() {
    let (bundle, shown) = pair();
    let second = SignedDuration::from_secs(1);
    assert_eq!(bundle.verify(&shown, NAME, shown.leaf.not_after), Ok(()));
    let late = bundle.verify(&shown, NAME, shown.leaf.not_after + second);
    assert_eq!(late, Err(Distrust::Expired { not_after: shown.leaf.not_after }));
    let early = bundle.verify(&shown, NAME, shown.leaf.not_before - second);
    assert_eq!(early, Err(Distrust::NotYetValid { not_before: shown.leaf.not_before }));
    assert!(!shown.is_nearly_over(now()));
    assert!(shown.is_nearly_over(shown.leaf.not_after - second));
}

/// Returns a self-signed certificate, as a single openssl command creates it.
fn self_signed() -> String {
    let mut params = CertificateParams::new(vec![NAME.to_owned()]).expect("a name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate").pem()
}

#[test]
fn a_leaf_in_the_bundle_itself_is_trusted() {
    let pem = self_signed();
    let bundle = Bundle::from_pem(pem.as_bytes()).expect("a bundle");
    let shown = ShownChain::from_pem(pem.as_bytes()).expect("a leaf");
    assert_eq!(bundle.verify(&shown, NAME, now()), Ok(()));
}

#[test]
fn an_expired_ca_is_not_trusted() {
    let key = KeyPair::generate().expect("a key");
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    ca.not_after = date_time_ymd(2020, 1, 1);
    let ca_pem = ca.self_signed(&key).expect("a CA").pem();
    let leaf_key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(vec![NAME.to_owned()]).expect("a name");
    let leaf = leaf.signed_by(&leaf_key, &Issuer::new(ca, key)).expect("a leaf");
    let bundle = Bundle::from_pem(ca_pem.as_bytes()).expect("a bundle");
    let shown = ShownChain::from_pem(leaf.pem().as_bytes()).expect("a chain");
    assert_eq!(bundle.verify(&shown, NAME, now()), Err(Distrust::CaExpired));
}

#[test]
fn unreadable_certificates_are_reported() {
    let problem = |text: &str| Bundle::from_pem(text.as_bytes()).expect_err("unreadable").to_string();
    assert_eq!(problem(""), "has no certificate");
    assert!(problem("-----BEGIN CERTIFICATE-----\nAA\n").starts_with("not PEM: "));
    let odd = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(problem(&[&self_signed(), odd].concat()).starts_with("certificate 2 is not X.509: "));
}
