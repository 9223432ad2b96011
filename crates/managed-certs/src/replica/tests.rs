//! Tests of how a replica handles events; the simulation interleaves the steps of several.

use super::*;
use crate::secret;

fn policy() -> Policy {
    let day = Duration::from_secs(24 * 3600);
    Policy {
        names: vec!["a.svc".to_owned()],
        lifetime: day,
        authority_lifetime: 2 * day,
        propagation: Duration::from_secs(10),
    }
}

/// The Secret with this version.
fn stored(content: &Content, version: &str) -> Stored {
    let mut object = secret::new("namespace", "name", content);
    object["metadata"]["resourceVersion"] = version.into();
    Stored::read(object)
}

fn made(now: Timestamp) -> Content {
    let circumstances = Circumstances { now, trusted_for: &|_| None, serving: None };
    match plan(&Content::default(), &policy(), &circumstances).expect("a plan") {
        Plan::Change(content, _) => *content,
        Plan::Keep(_) => panic!("there is no Secret yet"),
    }
}

#[test]
fn the_secret_is_read_before_anything_is_decided() {
    let (now, instant) = (Timestamp::now(), Instant::now());
    let mut replica = Replica::new(policy(), 1);
    assert!(matches!(replica.next(now, instant), Action::Wait(_)), "nothing was read");
    replica.hear_secret(Some(stored(&made(now), "7")));
    assert!(matches!(replica.next(now, instant), Action::ChangeSecret), "a watch may be late");
    replica.take_secret(Some(stored(&made(now), "8")));
    assert!(matches!(replica.next(now, instant), Action::Serve(_)));
    assert!(matches!(replica.next(now, instant), Action::Wait(_)));
}

#[test]
fn late_events_are_not_treated_as_new() {
    let (now, instant) = (Timestamp::now(), Instant::now());
    let (old, new) = (made(now), made(now));
    let mut replica = Replica::new(policy(), 1);
    replica.take_secret(Some(stored(&new, "10")));
    assert!(matches!(replica.next(now, instant), Action::Serve(_)));

    replica.hear_secret(Some(stored(&old, "9")));

    assert_eq!(replica.whole().map(|content| &content.bundle), Some(&new.bundle));
    assert!(matches!(replica.next(now, instant), Action::ChangeSecret), "it is read, to be sure");
    // In a cluster that was restored from a backup, versions start again, and the read object is the
    // present one.
    replica.take_secret(Some(stored(&old, "9")));
    assert_eq!(replica.whole().map(|content| &content.bundle), Some(&old.bundle));
}
