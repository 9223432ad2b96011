//! Tests of each step of a rotation.

mod damage;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

fn start() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time")
}

fn policy() -> Policy {
    Policy {
        names: vec!["a.svc".to_owned(), "::1".to_owned()],
        lifetime: 30 * HOUR,
        authority_lifetime: 120 * HOUR,
        propagation: 10 * SECOND,
    }
}

/// The input of a plan.
struct Look {
    policy: Policy,
    now: Timestamp,
    trusted_for: Option<Duration>,
    serving: Option<(X509, X509)>,
}

impl Look {
    /// Nothing is served, and no configuration has a CA.
    fn at(now: Timestamp) -> Self {
        Self { policy: policy(), now, trusted_for: None, serving: None }
    }

    fn trusted(self, trusted_for: Duration) -> Self {
        Self { trusted_for: Some(trusted_for), ..self }
    }

    fn plan(&self, content: &Content) -> Plan {
        let trusted_for = |_: &X509| self.trusted_for;
        let serving = self.serving.as_ref().map(|(leaf, authority)| (leaf, authority));
        plan(content, &self.policy, &Circumstances { now: self.now, trusted_for: &trusted_for, serving })
            .expect("a plan")
    }

    /// The new content of the Secret, as the next replica reads it.
    fn changed(&self, content: &Content, expected: &[Cause]) -> Content {
        match self.plan(content) {
            Plan::Change(content, causes) => {
                assert_eq!(causes, expected);
                assert!(content.is_whole());
                read_again(&content)
            }
            Plan::Keep(until) => {
                panic!("no change before {until}, but {expected:?} was expected")
            }
        }
    }

    fn kept_until(&self, content: &Content) -> Timestamp {
        match self.plan(content) {
            Plan::Keep(until) => until,
            Plan::Change(_, causes) => panic!("{causes:?}"),
        }
    }
}

/// Writes the content into a Secret and reads it.
fn read_again(content: &Content) -> Content {
    let until = content.replaced_until.map(|until| until.to_string());
    let (read, faults) = Content::read(&content.data(), until.as_deref());
    assert_eq!(faults, [""; 0]);
    assert_eq!((&read.bundle, read.replaced_until), (&content.bundle, content.replaced_until));
    read
}

fn made() -> Content {
    let causes = [Cause::NoAuthority, Cause::NoCertificate];
    Look::at(start()).changed(&Content::default(), &causes)
}

/// Two CAs, and the certificate of the older one.
fn rotating(now: Timestamp) -> Content {
    Look::at(now).changed(&renewed_until(now), &[Cause::AuthorityDue])
}

/// The last certificate of the first CA before this time.
fn renewed_until(now: Timestamp) -> Content {
    let mut content = made();
    while let due = leaf(&content).due()
        && due < now
    {
        content = Look::at(due).changed(&content, &[Cause::CertificateDue]);
    }
    content
}

fn leaf(content: &Content) -> &X509 {
    &content.leaf.as_ref().expect("a certificate").x509
}

#[test]
fn the_first_replica_creates_ca_and_certificate_in_one_step() {
    let made = made();
    assert_eq!(made.bundle.len(), 1);
    assert_eq!(made.newest(), made.signer());
    assert_eq!(leaf(&made).names, policy().names);
    assert_eq!(leaf(&made).not_after, start() + 30 * HOUR);
    assert_eq!(made.bundle[0].not_after, start() + 120 * HOUR);
    assert_eq!(Look::at(start()).kept_until(&made), start() + 20 * HOUR);
}

#[test]
fn a_certificate_is_renewed_after_two_thirds_by_the_same_ca() {
    let made = made();
    let due = start() + 20 * HOUR;
    assert_eq!(Look::at(due - SECOND).kept_until(&made), due);
    let renewed = Look::at(due).changed(&made, &[Cause::CertificateDue]);
    assert_ne!(leaf(&renewed), leaf(&made));
    assert_eq!(renewed.bundle, made.bundle);
    assert_eq!(renewed.replaced_until, Some(leaf(&made).not_after));
    assert_eq!(Look::at(due).kept_until(&renewed), due + 20 * HOUR);
}

#[test]
fn a_ca_is_trusted_before_it_signs_and_is_removed_after_its_certificates_expired() {
    let due = start() + 80 * HOUR;
    let before = renewed_until(due);
    let old = before.bundle[0].clone();

    let both = rotating(due);
    assert_eq!(both.bundle.len(), 2);
    assert_eq!(both.bundle[1].serial, both.signer().expect("the old one").serial);
    assert_ne!(both.newest(), both.signer());
    assert_eq!(leaf(&both).due(), leaf(&before).due(), "still the certificate of the old one");

    // During the propagation time nothing changes, however often a plan is made.
    assert_eq!(Look::at(due).kept_until(&both), leaf(&both).not_after);
    let known = Look::at(due).trusted(9 * SECOND);
    assert_eq!(known.kept_until(&both), due + SECOND);

    let switched = Look::at(due).trusted(10 * SECOND).changed(&both, &[Cause::AuthorityKnown]);
    assert_eq!(switched.newest(), switched.signer());
    assert_eq!(switched.bundle, both.bundle, "replicas may still serve the old certificate");
    assert_eq!(switched.replaced_until, Some(leaf(&both).not_after));

    let over = leaf(&both).not_after;
    assert!(over < start() + 120 * HOUR, "before the old CA itself expires");
    let kept = Look::at(over - SECOND).trusted(HOUR).kept_until(&switched);
    assert_eq!(kept, over);
    let serial = both.bundle[1].serial.clone();
    let alone = Look::at(over).trusted(HOUR).changed(&switched, &[Cause::AuthoritiesLeave(vec![serial])]);
    assert_eq!(alone.bundle.len(), 1);
    assert!(!alone.bundle.contains(&old));
}

#[test]
fn without_the_annotation_a_ca_stays_until_it_expires() {
    let due = start() + 80 * HOUR;
    let switched = Look::at(due).trusted(HOUR).changed(&rotating(due), &[Cause::AuthorityKnown]);
    let (unmarked, _) = Content::read(&switched.data(), Some("yesterday"));
    assert_eq!(unmarked.replaced_until, None);
    let late = leaf(&unmarked).due() + 5 * HOUR;
    let renewed = Look::at(late).trusted(HOUR).changed(&unmarked, &[Cause::CertificateDue]);
    let (unmarked, _) = Content::read(&renewed.data(), None);
    let end = start() + 120 * HOUR;
    let serial = switched.bundle[1].serial.clone();
    let kept = Look::at(end - SECOND).trusted(HOUR).kept_until(&unmarked);
    assert_eq!(kept, end);
    Look::at(end).trusted(HOUR).changed(&unmarked, &[Cause::AuthoritiesLeave(vec![serial])]);
}

#[test]
fn an_expired_certificate_is_replaced_even_by_a_ca_that_is_not_trusted_yet() {
    let due = start() + 80 * HOUR;
    let both = rotating(due);
    let expired = leaf(&both).not_after;
    let switched = Look::at(expired).changed(
        &both,
        &[Cause::CertificateExpired, Cause::AuthoritiesLeave(vec![both.bundle[1].serial.clone()])],
    );
    assert_eq!(switched.newest(), switched.signer());
}

#[test]
fn everything_that_has_expired_is_replaced_in_one_step() {
    let made = made();
    let late = start() + 200 * HOUR;
    let again = Look::at(late).changed(
        &made,
        &[
            Cause::AuthorityDue,
            Cause::CertificateExpired,
            Cause::AuthoritiesLeave(vec![made.bundle[0].serial.clone()]),
        ],
    );
    assert_eq!(again.bundle.len(), 1);
}

#[test]
fn a_missing_name_is_added_and_none_is_removed_before_the_next_renewal() {
    let with = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Look { policy: Policy { names, ..policy() }, ..Look::at(start()) }
    };
    let missing = |name: &str| Cause::NamesMissing(vec![name.to_owned()]);
    let (old, new) = (with(&["a", "b"]), with(&["a", "c"]));
    let causes = [Cause::NoAuthority, Cause::NoCertificate];
    let first = old.changed(&Content::default(), &causes);
    let second = new.changed(&first, &[missing("c")]);
    assert_eq!(leaf(&second).names, ["a", "c", "b"]);
    old.kept_until(&second);
    new.kept_until(&second);
    let due = Look { now: leaf(&second).due(), ..new };
    let third = due.changed(&second, &[Cause::CertificateDue]);
    assert_eq!(leaf(&third).names, ["a", "c"]);
}

#[test]
fn replicas_with_other_lifetimes_and_clocks_keep_a_certificate() {
    let made = made();
    let short = Policy { lifetime: 2 * HOUR, authority_lifetime: 3 * HOUR, ..policy() };
    let look = Look { policy: short, ..Look::at(start() + 10 * HOUR) };
    assert_eq!(look.kept_until(&made), start() + 20 * HOUR);
    // One whose clock is behind sees a certificate that begins in the future.
    assert_eq!(Look::at(start() - 5 * HOUR).kept_until(&made), start() + 20 * HOUR);
}
