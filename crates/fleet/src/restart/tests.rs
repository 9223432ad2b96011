use jiff::{SignedDuration, Timestamp};
use otel_webhook_inject::pause::Pause;

use super::*;
use crate::{count::OldPod, workload::Workload};

const OLD: &str = "v1:00000001";
const NEW: &str = "v1:00000002";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("a time")
}

fn instrumentation(generation: i64) -> Instrumentation {
    let (uid, namespace) = ("uid".to_owned(), "platform".to_owned());
    Instrumentation { uid, namespace, generation, resume: None }
}

/// A healthy Deployment of two pods with the old configuration, which consents to rollouts.
fn seen(namespace: &str, name: &str) -> ObservedWorkload {
    let pod = |number: usize| OldPod {
        name: format!("{name}-{number}"),
        uid: format!("uid-{name}-{number}"),
        created: at(-1000),
    };
    ObservedWorkload {
        workload: Workload::new("Deployment", namespace, name),
        consent: Ok(Consent::Rollout),
        instrumentation: Some("uid".to_owned()),
        config: Some(NEW.to_owned()),
        outdated: vec![pod(0), pod(1)],
        missed: 0,
        is_failing: false,
        unconfirmed: 0,
        unknown: None,
        paused: None,
        fit: Fit::Fits,
        is_ordered: false,
        health: Health::Healthy,
        available: 2,
        newest: Some(at(-1000)),
        refused: None,
        record: None,
    }
}

fn change(generation: i64) -> Change {
    Change { instrumentation: "uid".to_owned(), generation, config: NEW.to_owned(), attempt: 1 }
}

fn attempt(attempt: u8) -> Change {
    Change { attempt, ..change(2) }
}

/// What a controller does at one time, and the ledger that it leaves.
fn planned(second: i64, generation: i64, workloads: &[ObservedWorkload], ledger: &mut Ledger) -> Plan {
    planned_by(second, &instrumentation(generation), &Webhook::default(), workloads, ledger)
}

fn planned_by(
    second: i64,
    instrumentation: &Instrumentation,
    webhook: &Webhook,
    workloads: &[ObservedWorkload],
    ledger: &mut Ledger,
) -> Plan {
    let instrumentations = std::slice::from_ref(instrumentation);
    let plan =
        plan(Observed { now: at(second), instrumentations, workloads, webhook }, &Pace::default(), ledger);
    // Through the ConfigMap.
    *ledger = Ledger::read(&plan.ledger.write()).expect("a ledger");
    assert_eq!(*ledger, plan.ledger);
    plan
}

fn resumed(by: &str) -> Instrumentation {
    Instrumentation { resume: Some(by.to_owned()), ..instrumentation(2) }
}

fn stop(ledger: &Ledger) -> Option<&Stop> {
    ledger.waves["uid"].stops().next()
}

/// The workload as it is after its rollout.
fn up_to_date(seen: &mut ObservedWorkload, generation: i64) {
    seen.outdated.clear();
    seen.record = Some(change(generation));
}

fn code(plan: &Plan) -> Vec<&'static str> {
    plan.verdicts.iter().map(Verdict::code).collect()
}

#[test]
fn an_instrumentation_settles_then_a_canary_is_observed_then_the_others_follow() {
    let mut workloads: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| seen(name, name)).into();
    workloads[0].is_ordered = true;
    let mut ledger = Ledger::default();
    let settles = planned(0, 2, &workloads, &mut ledger);
    assert_eq!(code(&settles), ["WaitsForInstrumentation"; 5]);
    assert!(settles.steps.is_empty());

    // The first by name is an ordered StatefulSet, which is a canary only where nothing else is.
    let first = planned(61, 2, &workloads, &mut ledger);
    assert_eq!(first.steps, [Step::Rollout { workload: workloads[1].workload.clone(), change: change(2) }]);
    ledger.written(&workloads[1].workload);
    up_to_date(&mut workloads[1], 2);
    assert!(planned(62, 2, &workloads, &mut ledger).steps.is_empty());
    let observed = planned(181, 2, &workloads, &mut ledger);
    assert_eq!(observed.verdicts[2], Verdict::Waits(Wait::Canary(workloads[1].workload.clone())));

    let others = planned(183, 2, &workloads, &mut ledger);
    assert_eq!(code(&others), ["WaitsForOthers", "UpToDate", "Starts", "Starts", "Starts"]);
    let progress = others.progress(&workloads, "uid").expect("restarts");
    assert_eq!(progress, Progress { config: Some(NEW.to_owned()), done: 1, total: 5, ..Progress::default() });
}

/// So that nothing has to be planned as long as nothing changes.
#[test]
fn a_plan_that_time_cannot_change_stays_the_same() {
    let (mut idle, mut moving) = (0, 0);
    for (change, generation) in [
        ((|_: &mut ObservedWorkload| ()) as fn(&mut ObservedWorkload), 2),
        (|seen| seen.consent = Ok(Consent::Never), 2),
        (|seen| seen.unconfirmed = 1, 2),
        (|seen| seen.outdated.clear(), 2),
        (|seen| seen.fit = Fit::Paused, 2),
    ] {
        let mut workloads = [seen("a", "a"), seen("b", "b")];
        workloads.iter_mut().for_each(change);
        let mut ledger = Ledger::default();
        for second in [0, 61, 62] {
            let plan = planned(second, generation, &workloads, &mut ledger);
            if plan.may_change() {
                moving += 1;
                continue;
            }
            idle += 1;
            let later = planned(second + 86_400, generation, &workloads, &mut ledger.clone());
            assert_eq!((later.verdicts, later.steps), (plan.verdicts, Vec::new()));
            assert_eq!((later.ledger.waves, later.ledger.flights), (plan.ledger.waves, Vec::new()));
        }
    }
    assert_eq!((idle, moving), (12, 3), "only the first is restarted");
}

/// The code of a verdict, what leads to it, and a part of its sentence.
type Case<'c> = (&'c str, &'c dyn Fn(&mut ObservedWorkload), &'c str);

#[test]
fn what_cannot_or_may_not_be_restarted_has_a_verdict() {
    let failing = |name: &str| {
        Health::Failing(FailingPod {
            name: name.to_owned(),
            uid: "u".to_owned(),
            created: at(-5),
            reason: "CrashLoopBackOff".to_owned(),
        })
    };
    let cases: [Case<'_>; 14] = [
        ("NoConsent", &|seen| seen.consent = Ok(Consent::Never), "no consent; annotate the workload"),
        (
            "InvalidConsent",
            &|seen| seen.consent = Consent::of(Some("yes"), None, None),
            "\"yes\" is not valid",
        ),
        ("NoAgent", &|seen| seen.config = None, "a new pod would get no agent"),
        ("KindNotRestarted", &|seen| seen.fit = Fit::Kind, "its kind is not restarted"),
        (
            "Controlled",
            &|seen| seen.fit = Fit::Controlled("Rollout/a".to_owned()),
            "Rollout/a writes its template",
        ),
        ("Recreate", &|seen| seen.fit = Fit::Recreate, "ends all pods at once"),
        ("OnDelete", &|seen| seen.fit = Fit::OnDelete, "delete its pods"),
        ("Partition", &|seen| seen.fit = Fit::Partition, "set it to 0"),
        ("Paused", &|seen| seen.fit = Fit::Paused, "resume its rollout"),
        ("Failing", &|seen| seen.health = failing("a-0"), "pod a-0 cannot start"),
        (
            "AlreadyRestarted",
            &|seen| seen.record = Some(change(2)),
            "it was restarted for this configuration already",
        ),
        ("WaitsForConfirmation", &|seen| seen.unconfirmed = 1, "1 pods are unconfirmed"),
        (
            "WaitsForRollout",
            &|seen| seen.health = Health::Progressing { since: at(0), min_ready: SignedDuration::ZERO },
            "its last rollout is in progress, or not all of its pods are available",
        ),
        (
            "TooFewAvailable",
            &|seen| (seen.consent, seen.available) = (Ok(Consent::Evict), 1),
            "fewer than two pods are available",
        ),
    ];
    for (expected, spoil, sentence) in cases {
        let mut one = seen("shop", "a");
        spoil(&mut one);
        let mut ledger = Ledger::default();
        for second in [0, 61] {
            let plan = planned(second, 2, std::slice::from_ref(&one), &mut ledger);
            assert_eq!((code(&plan), plan.steps.len()), (vec![expected], 0));
            assert!(plan.verdicts[0].to_string().contains(sentence), "{}", plan.verdicts[0]);
        }
    }
}

/// It stays unknown whether such a pod is up to date: to wait for that would take forever.
#[test]
fn pods_whose_hash_is_of_another_version_block_no_restart_and_prove_nothing() {
    let mut workloads = [seen("a", "a"), seen("b", "b")];
    workloads[0].unknown = Some(at(-1000));
    workloads[0].outdated.truncate(1);
    let mut ledger = Ledger::default();
    planned(0, 2, &workloads, &mut ledger);
    assert_eq!(code(&planned(61, 2, &workloads, &mut ledger)), ["Starts", "WaitsForCanary"]);
    ledger.written(&workloads[0].workload);
    up_to_date(&mut workloads[0], 2);
    (workloads[0].unknown, workloads[0].newest) = (Some(at(62)), Some(at(62)));
    planned(63, 2, &workloads, &mut ledger);
    planned(300, 2, &workloads, &mut ledger);
    assert!(stop(&ledger).is_some_and(|stop| stop.reason.contains("did not get")), "{ledger:?}");
}

#[test]
fn evictions_go_on_where_a_rollout_is_not_possible() {
    let mut one = seen("shop", "a");
    (one.consent, one.fit) = (Ok(Consent::Evict), Fit::OnDelete);
    let mut ledger = Ledger::default();
    planned(0, 2, std::slice::from_ref(&one), &mut ledger);
    planned(61, 2, std::slice::from_ref(&one), &mut ledger);
    let evicted = |plan: &Plan| match &plan.steps[..] {
        [Step::Evict { uid, .. }] => uid.clone(),
        steps => panic!("{steps:?}"),
    };
    assert_eq!(evicted(&planned(62, 2, std::slice::from_ref(&one), &mut ledger)), "uid-a-0");
    one.outdated.remove(0);
    one.health = Health::Progressing { since: at(62), min_ready: SignedDuration::ZERO };
    assert!(planned(63, 2, std::slice::from_ref(&one), &mut ledger).steps.is_empty());
    one.health = Health::Healthy;
    assert_eq!(evicted(&planned(80, 2, std::slice::from_ref(&one), &mut ledger)), "uid-a-1");
    // Its successor is outdated as well, since the webhook is unavailable: it is not evicted for the same change again.
    one.outdated[0] = OldPod { name: "a-2".to_owned(), uid: "uid-a-2".to_owned(), created: at(81) };
    assert!(planned(90, 2, std::slice::from_ref(&one), &mut ledger).steps.is_empty());
    let stopped = planned(300, 2, std::slice::from_ref(&one), &mut ledger);
    assert!(stop(&ledger).is_some_and(|stop| stop.reason.contains("did not get")));
    assert!(stopped.steps.is_empty());
}

/// Lets the last start fail by a pod that cannot start.
fn fail(seen: &mut ObservedWorkload, second: i64) {
    let name = format!("{}-2", seen.workload.name);
    let reason = "CrashLoopBackOff".to_owned();
    seen.record = Some(change(2));
    seen.health =
        Health::Failing(FailingPod { uid: format!("uid-{name}"), name, created: at(second), reason });
}

#[test]
fn a_failing_canary_stops_its_namespace_and_the_next_change_mends_it_first() {
    let mut workloads = vec![seen("a", "a"), seen("a", "b"), seen("b", "c")];
    let mut ledger = Ledger::default();
    planned(0, 2, &workloads, &mut ledger);
    planned(61, 2, &workloads, &mut ledger);
    ledger.written(&workloads[0].workload);
    fail(&mut workloads[0], 62);
    let stopped = planned(90, 2, &workloads, &mut ledger);
    let by = "Deployment a/a: pod a-2 cannot start: CrashLoopBackOff";
    assert_eq!(stopped.verdicts[1].to_string(), format!("not restarted: stopped by {by}"));
    assert_eq!(code(&stopped)[2], "Starts", "a canary of another namespace");
    let progress = stopped.progress(&workloads, "uid").expect("restarts");
    assert_eq!((progress.done, progress.left, progress.is_stopped_for_all), (0, 1, false), "{progress:?}");
    ledger.written(&workloads[2].workload);
    up_to_date(&mut workloads[2], 2);
    assert!(planned(4000, 2, &workloads, &mut ledger).steps.is_empty());

    // The Instrumentation is put back to what it was: of all pods, only those that fail are outdated.
    for workload in &mut workloads {
        workload.config = Some(OLD.to_owned());
        workload.outdated.truncate(1);
    }
    workloads[1].outdated.clear();
    planned(4001, 3, &workloads, &mut ledger);
    let mended = planned(4062, 3, &workloads, &mut ledger);
    let back = Change { config: OLD.to_owned(), ..change(3) };
    assert_eq!(mended.steps, [Step::Rollout { workload: workloads[0].workload.clone(), change: back }]);
}

#[test]
fn two_failing_namespaces_or_that_of_the_instrumentation_stop_all() {
    let mut workloads: Vec<_> = ["a", "b", "c"].map(|name| seen(name, name)).into();
    let mut ledger = Ledger::default();
    planned(0, 2, &workloads, &mut ledger);
    for (index, second) in [(0, 61), (1, 90)] {
        assert_eq!(planned(second, 2, &workloads, &mut ledger).verdicts[index], Verdict::Starts);
        ledger.written(&workloads[index].workload);
        fail(&mut workloads[index], second + 1);
    }
    let stopped = planned(120, 2, &workloads, &mut ledger);
    assert_eq!(code(&stopped)[2], "RestartStopped");
    assert!(stopped.progress(&workloads, "uid").expect("restarts").is_stopped_for_all);

    let mut workloads: Vec<_> = ["platform", "shop"].map(|name| seen(name, name)).into();
    let mut ledger = Ledger::default();
    planned(0, 2, &workloads, &mut ledger);
    planned(61, 2, &workloads, &mut ledger);
    ledger.written(&workloads[0].workload);
    fail(&mut workloads[0], 62);
    assert_eq!(code(&planned(90, 2, &workloads, &mut ledger))[1], "RestartStopped");
}

#[test]
fn another_default_image_settles_and_has_a_canary_and_its_opposite_is_another_attempt() {
    let mut workloads: Vec<_> = ["a", "b"].map(|name| seen(name, name)).into();
    let mut ledger = Ledger::default();
    planned(0, 2, &workloads, &mut ledger);
    planned(61, 2, &workloads, &mut ledger);
    for workload in &mut workloads {
        ledger.note(&workload.workload, &change(2));
        up_to_date(workload, 2);
    }
    planned(62, 2, &workloads, &mut ledger);
    assert_eq!(planned(400, 2, &workloads, &mut ledger).done.len(), 0, "no pod is younger than the restart");
    for (second, config, number) in [(500, OLD, 2), (1000, NEW, 3)] {
        for workload in &mut workloads {
            *workload = ObservedWorkload {
                record: workload.record.take(),
                ..seen(&workload.workload.namespace, &workload.workload.name)
            };
            workload.config = Some(config.to_owned());
        }
        assert_eq!(code(&planned(second, 2, &workloads, &mut ledger)), ["WaitsForInstrumentation"; 2]);
        let canary = planned(second + 61, 2, &workloads, &mut ledger);
        assert_eq!(code(&canary), ["Starts", "WaitsForCanary"]);
        let change = Change { config: config.to_owned(), ..attempt(number) };
        assert_eq!(
            canary.steps,
            [Step::Rollout { workload: workloads[0].workload.clone(), change: change.clone() }]
        );
        ledger.written(&workloads[0].workload);
        for workload in &mut workloads {
            workload.record = Some(change.clone());
            workload.outdated.clear();
        }
        planned(second + 62, 2, &workloads, &mut ledger);
        planned(second + 300, 2, &workloads, &mut ledger);
    }
}

#[test]
fn nothing_begins_while_a_replica_of_the_webhook_would_inject_something_else() {
    let workloads = [seen("a", "a"), seen("b", "b")];
    let mut ledger = Ledger::default();
    planned(0, 2, &workloads, &mut ledger);
    let key = ("a".to_owned(), NEW.to_owned());
    let differs =
        Webhook { differs: [(key, "10.0.0.1 has another one".to_owned())].into(), ..Webhook::default() };
    let now = instrumentation(2);
    let other = planned_by(61, &now, &differs, &workloads, &mut ledger.clone());
    assert_eq!(code(&other), ["WaitsForWebhook", "Starts"]);
    let unavailable =
        Webhook { unavailable: Some("10.0.0.1 does not answer".to_owned()), ..Webhook::default() };
    let none = planned_by(62, &now, &unavailable, &workloads, &mut ledger);
    assert_eq!(code(&none), ["WaitsForWebhook"; 2]);
    let why = "waits: new pods might not get the configuration: 10.0.0.1 does not answer";
    assert_eq!(none.verdicts[0].to_string(), why);
    let progress = none.progress(&workloads, "uid").expect("restarts");
    let obstacle = ("WebhookUnavailable", "10.0.0.1 does not answer".to_owned());
    assert_eq!(progress.obstacle, Some(obstacle));
    assert_eq!(code(&planned(63, 2, &workloads, &mut ledger)), ["Starts", "WaitsForCanary"]);
}

#[test]
fn missed_pods_are_attempted_again_three_times_and_once_an_hour() {
    let mut workload = seen("a", "a");
    let mut ledger = Ledger::default();
    planned(0, 2, std::slice::from_ref(&workload), &mut ledger);
    planned(61, 2, std::slice::from_ref(&workload), &mut ledger);
    ledger.written(&workload.workload);
    workload.record = Some(change(2));
    let created = |second| OldPod { name: "a-9".to_owned(), uid: "uid-a-9".to_owned(), created: at(second) };
    let unavailable =
        Webhook { unavailable: Some("10.0.0.1 does not answer".to_owned()), ..Webhook::default() };
    // The webhook is unavailable while pods are replaced.
    let now = instrumentation(2);
    (workload.outdated, workload.missed) = (vec![created(62)], 1);
    planned_by(63, &now, &unavailable, std::slice::from_ref(&workload), &mut ledger);
    let ended = planned_by(190, &now, &unavailable, std::slice::from_ref(&workload), &mut ledger);
    assert!(ended.done.is_empty() && ended.steps.is_empty() && stop(&ledger).is_none(), "{ended:?}");
    let mut second = 200;
    for number in 2..=4 {
        let again = planned(second, 2, std::slice::from_ref(&workload), &mut ledger);
        let step = Step::Rollout { workload: workload.workload.clone(), change: attempt(number) };
        assert_eq!(again.steps, [step], "it goes on when the webhook is available");
        ledger.written(&workload.workload);
        workload.record = Some(attempt(number));
        workload.newest = Some(at(second + 1));
        (workload.outdated, workload.missed) = (Vec::new(), 0);
        planned(second + 2, 2, std::slice::from_ref(&workload), &mut ledger);
        assert_eq!(planned(second + 130, 2, std::slice::from_ref(&workload), &mut ledger).done.len(), 1);
        (workload.outdated, workload.missed) = (vec![created(second + 200)], 1);
        let soon = planned(second + 3590, 2, std::slice::from_ref(&workload), &mut ledger);
        assert_eq!(code(&soon), ["AlreadyRestarted"]);
        second += 3600;
    }
    assert_eq!(code(&planned(second, 2, std::slice::from_ref(&workload), &mut ledger)), ["AlreadyRestarted"]);
    let again =
        planned_by(second, &resumed("1"), &Webhook::default(), std::slice::from_ref(&workload), &mut ledger);
    assert_eq!(code(&again), ["Starts"], "a user may always resume");
}

#[test]
fn a_workload_that_never_becomes_available_gives_its_place_back() {
    let mut workload = seen("a", "a");
    let mut ledger = Ledger::default();
    planned(0, 2, std::slice::from_ref(&workload), &mut ledger);
    planned(61, 2, std::slice::from_ref(&workload), &mut ledger);
    ledger.written(&workload.workload);
    workload.record = Some(change(2));
    let hour = 3600;
    for second in (62..2 * hour).step_by(60) {
        // Its replicas change, and its pods have to be ready for 68 years.
        let min_ready = SignedDuration::from_secs(2_147_483_646);
        workload.health = Health::Progressing { since: at(second), min_ready };
        planned(second, 2, std::slice::from_ref(&workload), &mut ledger);
        assert_eq!(ledger.flights.is_empty(), second > 61 + 70 * 60, "after {second} s");
    }
    assert!(stop(&ledger).is_some_and(|stop| stop.reason.starts_with("not complete, and")), "{ledger:?}");
}

#[test]
fn a_workload_that_its_agent_keeps_from_starting_is_mended_first_though_its_rollout_is_incomplete() {
    for consent in [Consent::Rollout, Consent::Evict] {
        let mut workloads = vec![seen("a", "a"), seen("b", "b")];
        let failing = &mut workloads[1];
        failing.consent = Ok(consent);
        failing.health = Health::Progressing { since: at(-900), min_ready: SignedDuration::ZERO };
        failing.available = 0;
        let mut ledger = Ledger::default();
        planned(0, 2, &workloads, &mut ledger);
        assert_eq!(planned(61, 2, &workloads, &mut ledger.clone()).verdicts[0], Verdict::Starts);
        workloads[1].is_failing = true;
        let mended = planned(61, 2, &workloads, &mut ledger);
        assert_eq!(code(&mended), ["WaitsForCanary", "Starts"]);
        // Of its pods, only one that cannot start is evicted.
        assert!(
            planned(62, 2, &workloads, &mut ledger.clone())
                .steps
                .iter()
                .all(|step| !matches!(step, Step::Evict { .. }))
        );
        let pod = workloads[1].outdated[0].clone();
        let reason = "ImagePullBackOff".to_owned();
        workloads[1].health = Health::Failing(FailingPod {
            name: pod.name,
            uid: pod.uid.clone(),
            created: pod.created,
            reason,
        });
        let steps = planned(63, 2, &workloads, &mut ledger).steps;
        let evicted = matches!(&steps[..], [Step::Evict { uid, .. }] if *uid == pod.uid);
        assert_eq!(evicted, consent == Consent::Evict, "{steps:?}");
    }
}

#[test]
fn another_value_of_the_annotation_resumes() {
    let mut workloads = vec![seen("a", "a"), seen("a", "b")];
    let mut ledger = Ledger::default();
    planned(0, 2, &workloads, &mut ledger);
    planned(61, 2, &workloads, &mut ledger);
    ledger.written(&workloads[0].workload);
    workloads[0].health = Health::Progressing { since: at(62), min_ready: SignedDuration::from_secs(30) };
    workloads[0].record = Some(change(2));
    planned(690, 2, &workloads, &mut ledger);
    assert_eq!(stop(&ledger), None);
    planned(700, 2, &workloads, &mut ledger);
    assert!(stop(&ledger).is_some_and(|stop| stop.reason.starts_with("no progress since")));

    up_to_date(&mut workloads[0], 2);
    workloads[0].health = Health::Healthy;
    let webhook = Webhook::default();
    let again = planned_by(800, &resumed("1"), &webhook, &workloads, &mut ledger);
    assert_eq!(code(&again), ["Restarting", "Starts"], "another one is the canary");
    let second = Step::Rollout { workload: workloads[1].workload.clone(), change: attempt(2) };
    assert_eq!(again.steps, [second]);
}

#[test]
fn a_clock_that_was_ahead_delays_nothing_for_long() {
    let workloads = [seen("a", "a")];
    let mut ledger = Ledger::default();
    planned(1_000_000, 2, &workloads, &mut ledger);
    planned(0, 2, &workloads, &mut ledger);
    assert_eq!(planned(61, 2, &workloads, &mut ledger).verdicts, [Verdict::Starts]);
}

#[test]
fn the_nearest_consent_applies() {
    for (workload, namespace, instrumentation, expected) in [
        (None, None, None, Ok(Consent::Never)),
        (None, None, Some("rollout"), Ok(Consent::Rollout)),
        (None, Some("never"), Some("rollout"), Ok(Consent::Never)),
        (Some("evict"), Some("never"), None, Ok(Consent::Evict)),
        (Some("Rollout"), None, Some("rollout"), Err(InvalidConsent("Rollout".to_owned()))),
    ] {
        assert_eq!(Consent::of(workload, namespace, instrumentation), expected);
    }
}

#[test]
fn restarts_wait_for_the_end_of_a_pause() {
    let mut workloads: Vec<_> = ["a", "b"].map(|name| seen(name, name)).into();
    let mut ledger = Ledger::default();
    planned(0, 2, &workloads, &mut ledger);
    let by = Pause::Namespace("a".into());
    workloads[0].paused = Some(by.clone());
    let paused = planned(61, 2, &workloads, &mut ledger);
    assert_eq!(code(&paused), ["InjectionPaused", "Starts"]);
    let sentence = "waits: injection is paused by Namespace a; a restart would remove agents";
    assert_eq!(paused.verdicts[0].to_string(), sentence);
    assert_eq!(paused.verdicts[0], Verdict::Waits(Wait::Paused(by)));
    ledger.written(&workloads[1].workload);
    up_to_date(&mut workloads[1], 2);
    workloads[1].paused = Some(Pause::Release("otel-webhook".into()));
    assert_eq!(code(&planned(62, 2, &workloads, &mut ledger)), ["InjectionPaused", "Restarting"]);

    workloads[0].paused = None;
    workloads[1].paused = None;
    // The canary was interrupted, so it proves nothing, and there is another one.
    let resumed = planned(200, 2, &workloads, &mut ledger);
    assert_eq!(code(&resumed), ["Starts", "UpToDate"]);
    assert!(!ledger.waves["uid"].trials[NEW].is_proven);
}

#[test]
fn pods_that_were_created_during_a_pause_stop_no_restarts() {
    let mut workload = seen("a", "a");
    let mut ledger = Ledger::default();
    planned(0, 2, std::slice::from_ref(&workload), &mut ledger);
    planned(61, 2, std::slice::from_ref(&workload), &mut ledger);
    ledger.written(&workload.workload);
    up_to_date(&mut workload, 2);
    workload.paused = Some(Pause::Namespace("a".into()));
    planned(62, 2, std::slice::from_ref(&workload), &mut ledger);
    workload.paused = None;
    workload.outdated = vec![OldPod { name: "a-2".to_owned(), uid: "uid-a-2".to_owned(), created: at(62) }];
    planned(63, 2, std::slice::from_ref(&workload), &mut ledger);
    let ended = planned(300, 2, std::slice::from_ref(&workload), &mut ledger);
    assert_eq!(code(&ended), ["AlreadyRestarted"]);
    assert_eq!(stop(&ledger), None);
}

#[test]
fn evictions_wait_and_go_on_after_a_pause() {
    let mut workload = ObservedWorkload { consent: Ok(Consent::Evict), ..seen("a", "a") };
    let mut ledger = Ledger::default();
    planned(0, 2, std::slice::from_ref(&workload), &mut ledger);
    planned(61, 2, std::slice::from_ref(&workload), &mut ledger);
    workload.paused = Some(Pause::Namespace("a".into()));
    for second in [62, 190] {
        assert!(planned(second, 2, std::slice::from_ref(&workload), &mut ledger).steps.is_empty());
    }
    let waits = planned(200, 2, std::slice::from_ref(&workload), &mut ledger);
    assert_eq!(code(&waits), ["InjectionPaused"]);
    workload.paused = None;
    planned(201, 2, std::slice::from_ref(&workload), &mut ledger);
    let goes_on = planned(202, 2, std::slice::from_ref(&workload), &mut ledger);
    assert!(matches!(goes_on.steps[..], [Step::Evict { .. }]), "{goes_on:?}");
}

#[test]
fn a_refused_workload_is_left_without_a_start_and_the_others_go_on() {
    let mut workloads: Vec<_> = ["a", "b"].map(|name| seen(name, name)).into();
    let mut ledger = Ledger::default();
    planned(0, 2, &workloads, &mut ledger);
    let first = planned(61, 2, &workloads, &mut ledger);
    assert_eq!(first.steps, [Step::Rollout { workload: workloads[0].workload.clone(), change: change(2) }]);
    ledger.refused(&workloads[0].workload, "denied by the policy", at(61));
    assert!(ledger.starts.is_empty() && ledger.flights.is_empty(), "{ledger:?}");

    let next = planned(62, 2, &workloads, &mut ledger);
    assert_eq!(code(&next), ["RestartRefused", "Starts"]);
    assert!(next.verdicts[0].to_string().contains("refused it: denied by the policy; it is tried again"));
    ledger.written(&workloads[1].workload);
    up_to_date(&mut workloads[1], 2);
    planned(63, 2, &workloads, &mut ledger);
    let end = planned(250, 2, &workloads, &mut ledger);
    assert!(end.steps.is_empty(), "{:?}", end.steps);
    let progress = end.progress(&workloads, "uid").expect("restarts");
    assert_eq!((progress.done, progress.refused, progress.total), (1, 1, 2), "{progress:?}");

    let again = planned(300, 3, &workloads, &mut ledger);
    assert_eq!(code(&again)[0], "WaitsForInstrumentation", "the next generation is tried");
}

#[test]
fn a_refused_workload_is_tried_again_when_restarts_are_resumed() {
    let workloads = [seen("a", "a")];
    let mut ledger = Ledger::default();
    planned(0, 2, &workloads, &mut ledger);
    planned(61, 2, &workloads, &mut ledger);
    ledger.refused(&workloads[0].workload, "denied", at(61));
    assert_eq!(code(&planned(62, 2, &workloads, &mut ledger)), ["RestartRefused"]);
    let webhook = Webhook::default();
    let again = planned_by(70, &resumed("again"), &webhook, &workloads, &mut ledger);
    assert_eq!(code(&again), ["Starts"]);
}

/// The limit of the API server for the data of a ConfigMap.
const MEBIBYTE: usize = 1 << 20;

#[test]
fn fifty_thousand_workloads_and_what_users_write_fit_into_the_config_map() {
    let mut ledger = Ledger::default();
    let workload = seen("a", "a");
    let long = Instrumentation { resume: Some("x".repeat(250 * 1024)), ..instrumentation(2) };
    planned_by(0, &long, &Webhook::default(), std::slice::from_ref(&workload), &mut ledger);
    for number in 0..50_000 {
        let namespace = format!("namespace-{}", number % 500);
        ledger.note(&Workload::new("Deployment", &namespace, &format!("order-{number}")), &change(2));
    }
    assert!(ledger.write().len() < MEBIBYTE / 2, "{} bytes", ledger.write().len());
    let again = planned_by(61, &long, &Webhook::default(), std::slice::from_ref(&workload), &mut ledger);
    assert_eq!(code(&again), ["Starts"], "there is room, and the long value does not resume again");
    let last = Workload::new("Deployment", "namespace-499", "order-49999");
    assert_eq!(ledger.waves["uid"].trials[NEW].received.attempt(&last), Some(1));
}

#[test]
fn a_full_ledger_stops_the_instrumentations_of_its_largest_namespace_alone() {
    let mut ledger = Ledger::default();
    let of = |namespace: &str, number: usize| Instrumentation {
        uid: format!("{namespace}-{number}"),
        namespace: namespace.to_owned(),
        ..instrumentation(2)
    };
    let hostile = (0..5000).map(|number| of("hostile", number));
    let instrumentations: Vec<_> = hostile.chain([of("honest", 0)]).collect();
    let one = |used: &Instrumentation| ObservedWorkload {
        instrumentation: Some(used.uid.clone()),
        ..seen(&used.namespace, &used.uid)
    };
    // The honest one is the last by name.
    let workloads: Vec<_> = instrumentations
        .iter()
        .map(one)
        .map(|seen| match &*seen.workload.namespace {
            "honest" => ObservedWorkload { workload: Workload::new("Deployment", "z", "z"), ..seen },
            _ => seen,
        })
        .collect();
    let webhook = Webhook::default();
    for second in [0, 61] {
        let observed = Observed {
            now: at(second),
            instrumentations: &instrumentations,
            workloads: &workloads,
            webhook: &webhook,
        };
        let planned = plan(observed, &Pace::default(), &ledger);
        ledger = planned.ledger.clone();
        let size = ledger.write().len();
        assert!(size < MEBIBYTE, "{size} bytes");
        let full =
            planned.verdicts.iter().filter(|verdict| **verdict == Verdict::Left(Left::LedgerFull)).count();
        assert!(full > 1000 && ledger.waves.len() > 500, "{full} of {}", ledger.waves.len());
        assert_ne!(planned.verdicts[5000], Verdict::Left(Left::LedgerFull), "another namespace has room");
        let at = planned.verdicts.iter().position(|verdict| *verdict == Verdict::Left(Left::LedgerFull));
        let uid = &instrumentations[at.expect("one")].uid;
        let progress = planned.progress(&workloads, uid).expect("it is reported");
        assert_eq!(progress.obstacle.map(|(reason, _)| reason), Some("LedgerFull"));
    }
}

#[test]
fn an_eviction_that_is_never_allowed_takes_no_pace_and_starves_no_other() {
    let mut workloads: Vec<_> = ["a", "b", "c"].map(|name| seen(name, name)).into();
    for seen in &mut workloads {
        seen.consent = Ok(Consent::Evict);
    }
    let mut ledger = Ledger::default();
    planned(0, 2, &workloads, &mut ledger);
    ledger.waves.get_mut("uid").expect("restarts").trial(NEW, at(0)).is_proven = true;
    planned(61, 2, &workloads, &mut ledger);
    assert_eq!(ledger.flights.len(), 3);
    let mut tried = [0; 3];
    let refuse = |second: i64, step: &Step, workloads: &mut [ObservedWorkload], ledger: &mut Ledger| {
        let Step::Evict { workload, .. } = step else { panic!("{step:?}") };
        let index = workloads.iter().position(|seen| seen.workload == *workload).expect("it was planned");
        workloads[index].refused = Some("no disruption is allowed".to_owned());
        ledger.eviction_refused(workload, at(second));
        index
    };
    for second in 62..662 {
        let plan = planned(second, 2, &workloads, &mut ledger);
        for step in &plan.steps {
            tried[refuse(second, step, &mut workloads, &mut ledger)] += 1;
        }
        assert_eq!(ledger.starts, [], "a refusal takes nothing of the pace");
    }
    assert!(
        tried.iter().all(|count| (5..=7).contains(count)),
        "in turns, and less and less often: {tried:?}"
    );
    let sentence = planned(662, 2, &workloads, &mut ledger).verdicts[0].to_string();
    assert!(
        sentence.contains("one by one, which is not possible now: no disruption is allowed"),
        "{sentence}"
    );

    // One that is allowed begins at once.
    workloads.push(ObservedWorkload { refused: None, ..seen("d", "d") });
    let steps = planned(663, 2, &workloads, &mut ledger).steps;
    assert!(
        steps.iter().any(|step| matches!(step, Step::Rollout { workload, .. } if workload.name == "d")),
        "{steps:?}"
    );
}

#[test]
fn records_and_ledgers_of_earlier_versions_are_read() {
    let record = r#"{"instrumentation": "uid", "generation": 2, "config": "v1:00000002"}"#;
    assert_eq!(Change::read(record), Some(attempt(1)));
    let wave = r#"{"generation": 2, "since": "2026-01-01T00:00:00Z", "is_proven": true,
        "received": {"a": {"Deployment/a": ["v1:00000002"]}}}"#;
    let mut ledger = Ledger::read(&format!(r#"{{"waves": {{"uid": {wave}}}}}"#)).expect("a ledger");
    let workloads = [ObservedWorkload { record: Some(attempt(1)), ..seen("a", "a") }, seen("b", "b")];
    planned(0, 2, &workloads, &mut ledger);
    let canary = planned(61, 2, &workloads, &mut ledger);
    assert_eq!(code(&canary), ["AlreadyRestarted", "Starts"], "the record says what was received");
}
