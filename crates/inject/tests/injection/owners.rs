//! How many owners of a pod are looked up.

use otel_webhook_inject::{
    self as inject, Input, Note,
    catalogue::Catalogue,
    pod::Pod,
    workload::{self, Lookup, MOST_LOOKUPS, Owner, OwnerQuery, Owners},
};
use otel_webhook_testkit::{
    known::Known,
    objects::{NAMESPACE, asking},
    surroundings::{Injected, Surroundings, with},
};
use serde_json::{Value, json};

const MANY: usize = 10_000;

/// Each owner belongs to a CronJob.
struct Found;

impl Owners for Found {
    fn look_up(&self, _: OwnerQuery<'_>) -> Lookup {
        Lookup::Known(vec![owner("CronJob", "nightly", true)])
    }
}

struct TimedOut;

impl Owners for TimedOut {
    fn look_up(&self, _: OwnerQuery<'_>) -> Lookup {
        Lookup::Unknown
    }
}

fn owner(kind: &str, name: &str, controller: bool) -> Owner {
    Owner { kind: kind.into(), name: name.into(), uid: "u".into(), controller }
}

fn reference(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": name})
}

/// A pod with many owners of a kind. The one in the middle is the controller.
fn owned(kind: &str) -> Value {
    let mut pod = asking(&["sdk"], json!({}));
    let mut references: Vec<_> = (0..MANY).map(|number| reference(kind, &format!("o-{number}"))).collect();
    references[MANY / 2]["controller"] = true.into();
    pod["metadata"]["ownerReferences"] = references.into();
    pod
}

/// The names that are looked up.
fn looked_up(around: &Surroundings, pod: &Value) -> Vec<String> {
    let known = Known::of(&around.objects, &around.images);
    let text = pod.to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let catalogue: &Catalogue = &known.catalogue;
    let input = Input { pod: &pod, namespace: NAMESPACE, catalogue, settings: &around.settings };
    inject::decide(input).queries().iter().map(|query| query.name.to_owned()).collect()
}

fn notes(injected: &Injected) -> Vec<String> {
    injected.outcome.findings[0].notes.iter().map(ToString::to_string).collect()
}

fn codes(injected: &Injected) -> Vec<&str> {
    injected.outcome.findings[0].notes.iter().map(Note::code).collect()
}

#[test]
fn the_controller_and_the_first_owners_are_looked_up() {
    let looked_up = looked_up(&with(json!({})), &owned("Job"));
    assert_eq!(looked_up, ["o-5000", "o-0", "o-1"]);
    assert_eq!(looked_up.len(), MOST_LOOKUPS);
}

#[test]
fn a_note_counts_the_owners_that_are_not_looked_up() {
    let injected = with(json!({})).inject_with(&owned("Job"), Some(&Found));
    assert_eq!(injected.attribute("app", "k8s.cronjob.name"), Some("nightly"));
    let said = "at most 3 owners of a pod are looked up, the controller first; 9997 more were not, and the pod has \
                no attributes of their owners";
    assert_eq!(notes(&injected), [said]);
    let note = &injected.outcome.findings[0].notes[0];
    assert!(!note.is_warning() && note.code() == "OwnersNotLookedUp", "{note:?}");
}

#[test]
fn there_are_few_notes_about_many_owners() {
    let injected = with(json!({})).inject_with(&owned("Job"), Some(&TimedOut));
    assert_eq!(
        codes(&injected),
        ["OwnerNotLearned", "OwnerNotLearned", "OwnerNotLearned", "OwnersNotLookedUp"]
    );
}

#[test]
fn owners_that_follow_from_their_names_are_neither_looked_up_nor_noted() {
    let mut pod = asking(&["sdk"], json!({}));
    pod["metadata"]["labels"] = json!({"pod-template-hash": "abc"});
    let references: Vec<_> =
        (0..MANY).map(|number| reference("ReplicaSet", &format!("o{number}-abc"))).collect();
    pod["metadata"]["ownerReferences"] = references.into();
    assert_eq!(looked_up(&with(json!({})), &pod), Vec::<String>::new());
    let injected = with(json!({})).inject_with(&pod, Some(&TimedOut));
    assert_eq!(notes(&injected), Vec::<String>::new());

    let uids = with(json!({"resource": {"addK8sUIDAttributes": true}}));
    assert_eq!(looked_up(&uids, &pod), ["o0-abc", "o1-abc", "o2-abc"]);
}

#[test]
fn an_owner_is_looked_up_once_and_only_if_it_can_exist() {
    let long = "a".repeat(254);
    let mut pod = asking(&["sdk"], json!({}));
    let names = ["job", "job", "../../secrets", "..", "Job", "", "a/b", "a?b", &long, "job.2"];
    let references: Vec<_> = names.iter().map(|name| reference("Job", name)).collect();
    pod["metadata"]["ownerReferences"] = references.into();
    assert_eq!(looked_up(&with(json!({})), &pod), ["job", "job.2"]);
    let injected = with(json!({})).inject_with(&pod, Some(&TimedOut));
    assert_eq!(codes(&injected), ["OwnerNotLearned", "OwnerNotLearned"]);
}

#[test]
fn the_controller_and_the_first_owners_of_an_owner_are_kept() {
    let kept = |owners: Vec<Owner>| {
        workload::kept(owners).iter().map(|owner| owner.name.to_string()).collect::<Vec<_>>()
    };
    let mut owners: Vec<_> = (0..9).map(|number| owner("A", &format!("o-{number}"), false)).collect();
    assert_eq!(kept(owners.clone()), ["o-0", "o-1", "o-2", "o-3"]);
    owners[7].controller = true;
    owners[0].name = "n".repeat(300).into();
    assert_eq!(kept(owners), ["o-1", "o-2", "o-3", "o-7"]);
}
