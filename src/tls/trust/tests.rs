//! Each reason not to trust a certificate, and the two ways to do so.

use jiff::{SignedDuration, Timestamp};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd};

use super::{Bundle, Distrust, ShownChain};
use crate::tls::SelfSigned;

const NAME: &str = "otel-webhook.otel-webhook.svc";

fn pair() -> (Bundle, ShownChain) {
    let made = SelfSigned::generate(&[NAME, "127.0.0.1", "::1"]).expect("a pair");
    let bundle = Bundle::from_pem(made.ca_pem.as_bytes()).expect("an authority");
    (bundle, ShownChain::from_pem(made.certificate_pem.as_bytes()).expect("a leaf"))
}

fn now() -> Timestamp {
    Timestamp::now()
}

#[test]
fn a_leaf_of_an_authority_of_the_bundle_is_trusted_by_each_of_its_names() {
    let (bundle, shown) = pair();
    for name in [NAME, "127.0.0.1", "::1"] {
        assert_eq!(bundle.judge(&shown, name, now()), Ok(()), "{name}");
    }
    assert_eq!(shown.leaf.names, [NAME, "127.0.0.1", "::1"]);
    let (other, _) = pair();
    let both = Bundle([other.0, bundle.0].concat());
    assert_eq!(both.judge(&shown, NAME, now()), Ok(()));
}

#[test]
fn another_authority_and_another_name_are_told_apart() {
    let ((_, shown), (other, _)) = (pair(), pair());
    assert_eq!(other.judge(&shown, NAME, now()), Err(Distrust::OtherAuthority));
    let found = other.judge(&shown, "webhook.other.svc", now()).expect_err("another name");
    let text = "the certificate is not for webhook.other.svc; it is for otel-webhook.otel-webhook.svc, \
                127.0.0.1, ::1";
    assert_eq!(found.to_string(), text);
}

#[test]
fn a_certificate_is_trusted_while_it_is_valid() {
    let (bundle, shown) = pair();
    let second = SignedDuration::from_secs(1);
    assert_eq!(bundle.judge(&shown, NAME, shown.leaf.not_after), Ok(()));
    let late = bundle.judge(&shown, NAME, shown.leaf.not_after + second);
    assert_eq!(late, Err(Distrust::Expired { not_after: shown.leaf.not_after }));
    let early = bundle.judge(&shown, NAME, shown.leaf.not_before - second);
    assert_eq!(early, Err(Distrust::NotYetValid { not_before: shown.leaf.not_before }));
    assert!(!shown.is_nearly_over(now()));
    assert!(shown.is_nearly_over(shown.leaf.not_after - second));
}

/// What many make by one call of OpenSSL: it is its own authority.
fn own_authority() -> String {
    let mut params = CertificateParams::new(vec![NAME.to_owned()]).expect("a name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate").pem()
}

#[test]
fn a_leaf_that_stands_in_the_bundle_itself_is_trusted_as_go_does() {
    let pem = own_authority();
    let bundle = Bundle::from_pem(pem.as_bytes()).expect("a bundle");
    let shown = ShownChain::from_pem(pem.as_bytes()).expect("a leaf");
    assert_eq!(bundle.judge(&shown, NAME, now()), Ok(()));
}

#[test]
fn an_authority_that_has_expired_trusts_nothing_any_more() {
    let key = KeyPair::generate().expect("a key");
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority.not_after = date_time_ymd(2020, 1, 1);
    let authority_pem = authority.self_signed(&key).expect("an authority").pem();
    let leaf_key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(vec![NAME.to_owned()]).expect("a name");
    let leaf = leaf.signed_by(&leaf_key, &Issuer::new(authority, key)).expect("a leaf");
    let bundle = Bundle::from_pem(authority_pem.as_bytes()).expect("a bundle");
    let shown = ShownChain::from_pem(leaf.pem().as_bytes()).expect("a chain");
    assert_eq!(bundle.judge(&shown, NAME, now()), Err(Distrust::AuthorityExpired));
}

#[test]
fn what_cannot_be_read_is_said() {
    let problem = |text: &str| Bundle::from_pem(text.as_bytes()).expect_err("unreadable").to_string();
    assert_eq!(problem(""), "has no certificate");
    assert!(problem("-----BEGIN CERTIFICATE-----\nAA\n").starts_with("not PEM: "));
    let odd = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(problem(&[&own_authority(), odd].concat()).starts_with("certificate 2 is not X.509: "));
}
