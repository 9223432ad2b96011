//! The states of pods while injection is paused.

use crate::support::{Cluster, ENDPOINT, pod, report, rows};
use otel_webhook_fleet::{pod::RunningPod, report::Report, state::State};
use serde_json::{Value, json};

fn paused(mut cluster: Cluster) -> Cluster {
    cluster.objects[0]["metadata"]["annotations"] = json!({"otel-webhook/paused": "true"});
    cluster
}

fn named(mut pod: Value, name: &str) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": name, "controller": true});
    pod["metadata"]["name"] = json!(format!("{name}-0"));
    pod["metadata"]["uid"] = json!(name);
    pod["metadata"]["ownerReferences"] = json!([owner]);
    pod
}

fn states(report: &Report) -> Vec<(String, State, Option<String>)> {
    rows(report).into_iter().map(|(_, name, state, reason)| (name, state, reason)).collect()
}

/// Pods with the current configuration, with an earlier one, and without an agent.
fn pods(cluster: &Cluster) -> Vec<Value> {
    let earlier = Cluster::new("http://other:4317");
    vec![
        named(cluster.injected(pod(&["java"])), "injected"),
        named(earlier.injected(pod(&["java"])), "stale"),
        named(pod(&["java"]), "without"),
    ]
}

#[test]
fn injected_pods_keep_their_state_and_the_others_are_skipped() {
    let cluster = Cluster::new(ENDPOINT);
    let pods = pods(&cluster);
    let read = || pods.iter().filter_map(RunningPod::read);
    let row = |name: &str, state, reason: Option<&str>| (name.to_owned(), state, reason.map(str::to_owned));
    let injected = row("injected", State::Injected, None);
    let stale = row("stale", State::Stale, Some("ConfigurationChanged"));

    let before = report(&cluster, read());
    let missed = row("without", State::Missed, Some("WebhookNotReached"));
    assert_eq!(states(&before), [injected.clone(), stale.clone(), missed]);
    assert!(before.paused.is_empty() && before.workloads.iter().all(|row| row.paused.is_none()));

    let during = report(&paused(cluster), read());
    let skipped = row("without", State::Skipped, Some("Paused"));
    assert_eq!(states(&during), [injected, stale, skipped]);
    let [instrumentation] = &during.instrumentations[..] else { panic!("{during:?}") };
    let counts = json!({"matched": 3, "injected": 1, "stale": 1, "missed": 0, "skipped": 1, "foreign": 0,
        "unconfirmed": 0, "failing": 0});
    assert_eq!(
        json!(instrumentation.pods),
        counts,
        "the pods without an agent are still those of the Instrumentation"
    );
}

#[test]
fn the_commands_are_those_that_remove_agents() {
    let cluster = paused(Cluster::new(ENDPOINT));
    let pods = pods(&Cluster::new(ENDPOINT));
    let report = report(&cluster, pods.iter().filter_map(RunningPod::read));
    let commands: Vec<_> = report
        .workloads
        .iter()
        .map(|row| (row.command.clone(), row.paused.clone().expect("it is paused").command))
        .collect();
    let removes = |name: &str| Some(format!("kubectl rollout restart statefulset/{name} -n shop"));
    assert_eq!(commands, [(None, removes("injected")), (None, removes("stale")), (None, None)]);
    assert_eq!(
        json!(report.paused),
        json!([{"by": "Instrumentation shop/inst", "scope": "instrumentation", "pods": "the pods that would use it",
            "command": "kubectl annotate instrumentations.opentelemetry.io inst -n shop otel-webhook/paused-"}])
    );
}

/// Several agents of `spec.agents` have one hash in a pod.
#[test]
fn pods_with_an_agent_of_each_language_are_up_to_date_during_a_pause() {
    for language in otel_webhook_inject::language::LANGUAGES.iter().map(|row| row.name) {
        let cluster = Cluster::new(ENDPOINT);
        let injected = named(cluster.injected(pod(&[language])), "a");
        let report = report(&paused(cluster), RunningPod::read(&injected).into_iter());
        assert_eq!(states(&report), [("a".to_owned(), State::Injected, None)], "{language}");
    }
}
