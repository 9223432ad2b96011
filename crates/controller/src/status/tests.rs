use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::{compiled::Shared, object};

use super::*;
use otel_webhook_fleet::report::WorstWorkload;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn row(injected: usize, stale: usize) -> InstrumentationRow {
    let pods = Counts { matched: injected + stale, injected, stale, ..Counts::default() };
    InstrumentationRow { pods, ..InstrumentationRow::default() }
}

fn input<'t>(row: &'t InstrumentationRow, stored: Option<&'t Stored>) -> Input<'t> {
    Input { row, named: Named::All, stored, restart: Restart::None, mistakes: None }
}

fn stored(spec: &Value) -> Stored {
    let object = json!({"metadata": {"namespace": "shop", "name": "inst"}, "spec": spec});
    object::instrumentation(&object, &DefaultImages::default(), &mut Shared::default())
}

fn condition<'s>(status: &'s Value, kind: &str) -> &'s Value {
    let all = status["conditions"].as_array().expect("conditions");
    all.iter().find(|condition| condition["type"] == kind).expect("the condition")
}

#[test]
fn nothing_is_written_while_nothing_changes() {
    let valid = stored(&json!({}));
    let first = of(input(&row(3, 0), Some(&valid)), 1, &Value::Null, at(0)).expect("a first status");
    assert_eq!(first["lastUpdated"], "1970-01-01T00:00:00Z");
    assert_eq!(of(input(&row(3, 0), Some(&valid)), 1, &first, at(60)), None);
    let second = of(input(&row(2, 1), Some(&valid)), 1, &first, at(60)).expect("another status");
    assert_eq!(second["lastUpdated"], "1970-01-01T00:01:00Z");
    assert_eq!(condition(&second, "UpToDate")["status"], "False");
    assert_eq!(condition(&second, "UpToDate")["message"], "3 pods: 2 injected, 1 stale");
    assert_eq!(condition(&second, "UpToDate")["lastTransitionTime"], "1970-01-01T00:01:00Z");
    assert_eq!(condition(&second, "Ready")["lastTransitionTime"], "1970-01-01T00:00:00Z");
}

#[test]
fn ready_is_a_matter_of_the_specification_alone() {
    for (spec, status, reason, message) in [
        (json!({}), "True", "Valid", "the specification can be used"),
        (json!({"sampler": {"type": 7}}), "False", "Invalid", "invalid type: integer `7`"),
    ] {
        let status_of =
            of(input(&row(0, 5), Some(&stored(&spec))), 4, &Value::Null, at(0)).expect("a status");
        let ready = condition(&status_of, "Ready");
        assert_eq!((&ready["status"], &ready["reason"]), (&json!(status), &json!(reason)), "{ready}");
        assert!(ready["message"].as_str().expect("text").contains(message), "{ready}");
        assert_eq!(ready["observedGeneration"], 4);
    }
}

#[test]
fn conditions_and_fields_of_others_stay() {
    let before = json!({"upgradeBlockedVersions": {"java": "1"}, "conditions": [{"type": "Theirs", "status": "True"}]});
    let status = of(input(&row(1, 0), None), 1, &before, at(0)).expect("a status");
    assert_eq!(status["conditions"][0], before["conditions"][0]);
    assert!(status.get("upgradeBlockedVersions").is_none(), "not in the patch, so not changed: {status}");
}

#[test]
fn restarts_are_told_while_there_are_any() {
    let valid = stored(&json!({}));
    let progress = |done, stop: Option<Stop>| Progress {
        config: Some("java=v1:0".to_owned()),
        done,
        total: 3,
        is_stopped_for_all: stop.is_some(),
        stop,
        ..Progress::default()
    };
    let obstacle = |reason| Some((reason, "10.0.0.1 does not answer".to_owned()));
    let waits = |reason| Progress { obstacle: obstacle(reason), ..progress(1, None) };
    let in_namespace = |stop| Progress { is_stopped_for_all: false, left: 1, ..progress(2, Some(stop)) };
    let stop = Stop {
        workload: Workload::new("Deployment", "shop", "order"),
        reason: "pod order-1 cannot start: CrashLoopBackOff".to_owned(),
        at: at(0),
        is_for_all: false,
    };
    let mut before = Value::Null;
    for (progress, in_progress, stopped) in [
        (progress(1, None), ["True", "WorkloadsOutdated"], ["False", "NotStopped"]),
        (waits("WebhookUnavailable"), ["True", "WebhookUnavailable"], ["False", "NotStopped"]),
        (progress(2, Some(stop.clone())), ["False", "RestartStopped"], ["True", "PodsFail"]),
        (in_namespace(stop), ["False", "WorkloadsNotUpToDate"], ["True", "PodsFail"]),
        (progress(3, None), ["False", "WorkloadsRestarted"], ["False", "NotStopped"]),
    ] {
        let row = row(3, 0);
        let input = Input { restart: Restart::Planned(&progress), ..input(&row, Some(&valid)) };
        let status = of(input, 1, &before, at(0)).expect("another status");
        for (kind, expected) in [("RestartInProgress", in_progress), ("RestartStopped", stopped)] {
            let condition = condition(&status, kind);
            let found = ["status", "reason"].map(|field| condition[field].as_str().expect("text"));
            assert_eq!(found, expected, "{condition}");
        }
        assert_eq!(status["restart"]["done"], progress.done);
        let message = condition(&status, "RestartStopped")["message"].as_str().expect("text");
        let part = "Deployment shop/order: pod order-1 cannot start: CrashLoopBackOff; restarts go on after";
        assert_eq!(message.contains(part), progress.stop.is_some(), "{message}");
        let stored = as_stored(&status);
        assert_eq!(of(input, 1, &stored, at(9)), None);
        let unplanned = of(Input { restart: Restart::Unplanned, ..input }, 1, &stored, at(9));
        assert_eq!(unplanned, None, "a new leader keeps what the last one wrote");
        before = stored;
    }
    let row = row(3, 0);
    let without = of(input(&row, Some(&valid)), 1, &before, at(0)).expect("another status");
    assert!(without["restart"].is_null(), "a merge patch removes it: {without}");
    assert_eq!(without["conditions"].as_array().map(Vec::len), Some(2), "{without}");
}

#[test]
fn workloads_of_other_namespaces_are_counted_and_not_named() {
    let worst = |namespace: &str| WorstWorkload {
        workload: Workload::new("Deployment", namespace, "secret"),
        stale: 1,
        missed: 0,
        failing: 0,
        silent: None,
        reason: "ConfigurationChanged".to_owned(),
    };
    let row = InstrumentationRow { workloads: vec![worst("shop"), worst("bank")], more: 3, ..row(0, 5) };
    let stop = |namespace: &str| Stop {
        workload: Workload::new("Deployment", namespace, "secret"),
        reason: "pod secret-1 cannot start: CrashLoopBackOff".to_owned(),
        at: at(0),
        is_for_all: true,
    };
    let progress = |namespace: &str| Progress {
        total: 2,
        refused: 1,
        refusal: Some(stop(namespace)),
        stop: Some(stop(namespace)),
        ..Progress::default()
    };
    let status_of = |named, namespace: &str| {
        let progress = progress(namespace);
        let input = Input { named, restart: Restart::Planned(&progress), ..input(&row, None) };
        of(input, 1, &Value::Null, at(0)).expect("a status")
    };
    let status = status_of(Named::Of("shop"), "bank");
    assert!(!status.to_string().contains("bank") && !status.to_string().contains("secret-1"), "{status}");
    assert_eq!((&status["workloads"][0]["namespace"], &status["more"]), (&json!("shop"), &json!(4)));
    let stopped = condition(&status, "RestartStopped")["message"].as_str().expect("text");
    assert!(stopped.contains("a workload of another namespace failed"), "{stopped}");
    assert_eq!(condition(&status, "RestartInProgress")["message"], "0 of 2 workloads restarted; 1 refused");
    let own = status_of(Named::Of("shop"), "shop");
    assert!(own["restart"]["stoppedBy"].as_str().expect("text").contains("Deployment shop/secret"), "{own}");
    let all = status_of(Named::All, "bank");
    assert!(all.to_string().contains("Deployment bank/secret") && all["more"] == 3, "{all}");
}

/// What kstatus, by which Flux and others wait, says of an object of a kind that it does not know: by its
/// documentation, from `status.observedGeneration` and the conditions `Reconciling`, `Stalled` and `Ready`.
fn kstatus(generation: i64, status: &Value) -> &'static str {
    let is = |kind: &str, value: &str| {
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == kind && condition["status"] == value)
    };
    if status["observedGeneration"].as_i64().is_some_and(|observed| observed != generation) {
        "InProgress"
    } else if is("Stalled", "True") {
        "Failed"
    } else if is("Reconciling", "True") || is("Ready", "False") || is("Ready", "Unknown") {
        "InProgress"
    } else {
        "Current"
    }
}

#[test]
fn those_who_wait_for_the_object_wait_for_a_usable_specification_only() {
    let (valid, invalid) = (stored(&json!({})), stored(&json!({"sampler": {"type": 7}})));
    let stop = Stop {
        workload: Workload::new("Deployment", "shop", "order"),
        reason: "no progress".to_owned(),
        at: at(0),
        is_for_all: false,
    };
    let restarting = Progress { done: 1, total: 2, ..Progress::default() };
    let stopped = Progress { stop: Some(stop), ..restarting.clone() };
    let unread = Counts { matched: 2, unconfirmed: 2, ..Counts::default() };
    let unread = InstrumentationRow { pods: unread, ..InstrumentationRow::default() };
    for (what, row, stored, restart, expected) in [
        ("no pods", &row(0, 0), &valid, None, "Current"),
        ("all up to date", &row(3, 0), &valid, None, "Current"),
        ("stale pods", &row(3, 9), &valid, None, "Current"),
        ("unconfirmed pods", &unread, &valid, None, "Current"),
        ("restarts in progress", &row(3, 9), &valid, Some(&restarting), "Current"),
        ("restarts stopped", &row(3, 9), &valid, Some(&stopped), "Current"),
        ("a specification that cannot be used", &row(3, 0), &invalid, None, "InProgress"),
    ] {
        let restart = restart.map_or(Restart::None, Restart::Planned);
        let input = Input { row, named: Named::All, stored: Some(stored), restart, mistakes: None };
        let status = of(input, 2, &Value::Null, at(0)).expect("a status");
        assert_eq!(kstatus(2, &status), expected, "{what}: {status}");
        assert_eq!(
            kstatus(3, &status),
            expected,
            "{what}, while the controller has not seen the next generation"
        );
    }
}
