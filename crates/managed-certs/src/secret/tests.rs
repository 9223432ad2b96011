//! Tests of whose a Secret is, and of what stays when it is written.

use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::plan::{Circumstances, Plan, Policy, plan};

fn content() -> Content {
    let hour = Duration::from_secs(3600);
    let policy = Policy {
        names: vec!["a.svc".to_owned()],
        lifetime: hour,
        authority_lifetime: hour,
        propagation: Duration::from_secs(1),
    };
    let circumstances = Circumstances { now: Timestamp::now(), trusted_for: &|_| None, serving: None };
    match plan(&Content::default(), &policy, &circumstances).expect("a plan") {
        Plan::Change(content, _) => *content,
        Plan::Keep(_) => panic!("there is nothing yet"),
    }
}

/// A Secret with this content, changed.
fn stored(change: impl FnOnce(&mut Value)) -> Stored {
    let mut object = new("namespace", "name", &content());
    change(&mut object);
    Stored::read(object)
}

fn without_label(object: &mut Value) {
    object["metadata"]["labels"] = json!({});
}

#[test]
fn what_the_program_made_is_its_own_however_damaged() {
    assert_eq!(stored(|_| {}).foreign, None);
    assert_eq!(stored(|object| object["data"]["ca.key"] = "".into()).foreign, None);
    assert_eq!(stored(|object| object["data"] = json!({})).foreign, None);
}

#[test]
fn what_somebody_else_made_is_used_as_it_is_or_left_alone() {
    assert_eq!(stored(without_label).foreign, None, "all that is needed is in it");
    let nothing = stored(|object| {
        without_label(object);
        object["data"] = json!({"tls.crt": "", "tls.key": ""});
    });
    assert_eq!(nothing.foreign, None, "there is nothing to be lost");

    // As cert-manager makes them: without the authority's key.
    let issued = stored(|object| {
        without_label(object);
        object["data"].as_object_mut().expect("data").remove("ca.key");
    });
    let problem = issued.foreign.expect("a problem");
    assert!(problem.contains("no label app.kubernetes.io/managed-by=otel-webhook"), "{problem}");
    let opaque = stored(|object| object["type"] = "Opaque".into()).foreign.expect("a problem");
    assert!(opaque.contains("it is of type \"Opaque\""), "{opaque}");
}

#[test]
fn what_others_put_into_it_stays() {
    let stored = stored(|object| {
        without_label(object);
        object["metadata"]["resourceVersion"] = "7".into();
        object["metadata"]["labels"]["team"] = "platform".into();
        object["metadata"]["annotations"] = json!({"note": "ours"});
        object["data"]["extra"] = "eA==".into();
    });
    let mut next = content();
    next.replaced_until = Some(Timestamp::UNIX_EPOCH);
    let written = stored.with(&next);
    assert_eq!(version(&written), Some("7"), "of the version that was read");
    assert_eq!(written["metadata"]["labels"]["team"], "platform");
    assert_eq!(written["metadata"]["labels"][MANAGED_BY], PROGRAM);
    assert_eq!(written["metadata"]["annotations"]["note"], "ours");
    assert_eq!(written["metadata"]["annotations"][REPLACED_UNTIL], "1970-01-01T00:00:00Z");
    assert_eq!(written["data"]["extra"], "eA==");
    assert_eq!(Stored::read(written).content.bundle, next.bundle);
}
