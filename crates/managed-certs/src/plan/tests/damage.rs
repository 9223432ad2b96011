//! Tests of damaged and deleted Secrets.

use super::*;
use crate::content::{AUTHORITY_KEY, BUNDLE, CERTIFICATE, Data, KEY};

fn damaged(content: &Content, damage: impl FnOnce(&mut Data)) -> (Content, Vec<String>) {
    let mut data = content.data();
    damage(&mut data);
    let until = content.replaced_until.map(|until| until.to_string());
    Content::read(&data, until.as_deref())
}

#[test]
fn a_lost_ca_is_replaced_and_its_certificate_stays() {
    let made = made();
    let other = read_again(&super::made());
    let fault = "ca.key: is not the private key of a CA in ca.crt";
    for key in [&b""[..], b"nonsense", &other.data()[AUTHORITY_KEY]] {
        let (read, faults) = damaged(&made, |data| {
            data.insert(AUTHORITY_KEY.to_owned(), key.to_vec());
        });
        assert_eq!(faults, [fault]);
        assert!(read.authority.is_none() && !read.is_whole());
        let mended = Look::at(start()).changed(&read, &[Cause::NoAuthority]);
        assert_eq!(mended.bundle[1..], made.bundle, "API servers trust it");
        assert_eq!(leaf(&mended), leaf(&made));
        Look::at(start()).trusted(10 * SECOND).changed(&mended, &[Cause::AuthorityKnown]);
    }
}

#[test]
fn a_lost_certificate_is_issued_by_the_same_ca() {
    let made = made();
    let other = super::made().data();
    for (key, value, fault) in [
        (CERTIFICATE, &b""[..], "tls.crt: has no certificate"),
        (
            CERTIFICATE,
            &other[CERTIFICATE],
            "tls.key: is not the private key of the first certificate of tls.crt",
        ),
        (KEY, b"nonsense", "tls.key: has no private key (PKCS#8, SEC1 or PKCS#1)"),
    ] {
        let (read, faults) = damaged(&made, |data| {
            data.insert(key.to_owned(), value.to_vec());
        });
        assert_eq!(faults, [fault]);
        let mended = Look::at(start()).changed(&read, &[Cause::NoCertificate]);
        assert_eq!(mended.bundle, made.bundle);
    }
    let (read, faults) = damaged(&made, |data| {
        for key in [CERTIFICATE, KEY] {
            data.insert(key.to_owned(), other[key].clone());
        }
    });
    assert_eq!(faults, [""; 0], "a pair, but not ours");
    Look::at(start()).changed(&read, &[Cause::CertificateNotTrusted]);
}

#[test]
fn a_lost_bundle_keeps_what_a_replica_serves_trusted() {
    let made = made();
    let served = (leaf(&made).clone(), made.bundle[0].clone());
    let (read, faults) = damaged(&made, |data| {
        data.insert(BUNDLE.to_owned(), b"-----BEGIN CERTIFICATE-----\nnonsense".to_vec());
    });
    assert_eq!(
        faults,
        ["ca.crt: is not PEM", "ca.crt: has no CA", "ca.key: is not the private key of a CA in ca.crt"]
    );
    let look = Look { serving: Some(served), ..Look::at(start()) };
    let mended = look.changed(&read, &[Cause::NoAuthority]);
    assert_eq!(mended.bundle[1..], made.bundle);
    assert_eq!(leaf(&mended), leaf(&made), "it is trusted, the new CA is not yet");
    // A replica that serves nothing has to start again.
    let causes = [Cause::NoAuthority, Cause::CertificateNotTrusted];
    assert_eq!(Look::at(start()).changed(&read, &causes).bundle.len(), 1);
}

#[test]
fn a_deleted_secret_is_created_again_and_the_served_certificate_stays_trusted() {
    let made = made();
    let served = (leaf(&made).clone(), made.bundle[0].clone());
    let look = Look { serving: Some(served), ..Look::at(start() + HOUR) };
    let again = look.changed(&Content::default(), &[Cause::NoAuthority, Cause::NoCertificate]);
    assert_eq!(again.bundle[1..], made.bundle);
    assert_eq!(again.newest(), again.signer());
    assert_eq!(again.replaced_until, Some(leaf(&made).not_after), "until then it stays");

    let late = made.bundle[0].not_after;
    let look = Look { now: late, ..look };
    let again = look.changed(&Content::default(), &[Cause::NoAuthority, Cause::NoCertificate]);
    assert_eq!(again.bundle.len(), 1, "an expired certificate needs no CA");
}

#[test]
fn logs_contain_no_keys() {
    let data = made().data();
    assert!(data.keys().eq([BUNDLE, AUTHORITY_KEY, CERTIFICATE, KEY]));
    let (content, _) = Content::read(&data, None);
    for key in [AUTHORITY_KEY, KEY] {
        let text = String::from_utf8(data[key].clone()).expect("PEM");
        let body = text.lines().nth(1).expect("a line of the key");
        let one_line = text.replace('\n', "\\n");
        for damage in [one_line.as_bytes(), body.as_bytes(), &text.as_bytes()[..100]] {
            let (_, faults) = damaged(&content, |data| {
                data.insert(key.to_owned(), damage.to_vec());
            });
            assert!(!faults.is_empty());
            let part = &body[..8];
            let listed = format!("{:?}", part.as_bytes());
            let said = faults.join("\n");
            assert!(!said.contains(part) && !said.contains(listed.trim_matches(['[', ']'])), "{said}");
        }
    }
}
