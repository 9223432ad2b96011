//! Tests of who manages a Secret, and of what stays when it is written.

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
        Plan::Keep(_) => panic!("there is no Secret yet"),
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
fn a_labelled_secret_may_be_overwritten_however_damaged() {
    assert_eq!(stored(|_| {}).foreign, None);
    assert_eq!(stored(|object| object["data"]["ca.key"] = "".into()).foreign, None);
    assert_eq!(stored(|object| object["data"] = json!({})).foreign, None);
}

#[test]
fn a_secret_of_another_tool_is_used_unchanged_or_not_at_all() {
    assert_eq!(stored(without_label).foreign, None, "it is complete");
    let nothing = stored(|object| {
        without_label(object);
        object["data"] = json!({"tls.crt": "", "tls.key": ""});
    });
    assert_eq!(nothing.foreign, None, "it has no content to lose");

    // As cert-manager creates them: without the key of the CA.
    let issued = stored(|object| {
        without_label(object);
        object["data"].as_object_mut().expect("data").remove("ca.key");
    });
    let problem = issued.foreign.expect("a problem");
    assert!(problem.contains("no label app.kubernetes.io/managed-by=otel-webhook"), "{problem}");
    let opaque = stored(|object| object["type"] = "Opaque".into()).foreign.expect("a problem");
    assert!(opaque.contains("its type is \"Opaque\""), "{opaque}");
}

#[test]
fn data_and_metadata_of_others_stay() {
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
