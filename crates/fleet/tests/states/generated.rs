//! Generated pods right after their admission: the controller, which reads metadata first, has the states that `explain`
//! reads from the pods themselves, and both are what the reviews have decided.

use std::collections::BTreeMap;

use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_fleet::{census::Census, pod::RunningPod, report::LanguageRow, state::State};
use otel_webhook_inject::{Finding, Settings, language::LanguageSet, reason::Reason};
use otel_webhook_testkit::{generated::pods::generate, known::Known, surroundings::Surroundings};
use serde_json::{Value, json};

use crate::support::{Cluster, report_knowing, rows};

const PODS: u64 = 2_000;

/// The pods of one owner.
const OF_ONE: u64 = 300;

/// A pod as an API server stores it after its review, and what the review decided on each language.
fn admitted(
    cluster: &Cluster,
    known: &Known,
    pod: &Value,
    name: &str,
) -> (Value, BTreeMap<&'static str, State>) {
    let settings = cluster.settings.clone();
    let around = Surroundings { settings, namespace: "shop".to_owned(), ..Surroundings::new([]) };
    let injected = around.inject_knowing(pod, &known.catalogue, &known.owners);
    let mut pod = injected.pod;
    for (field, value) in [("name", name), ("uid", name), ("namespace", "shop")] {
        pod["metadata"][field] = json!(value);
    }
    pod["metadata"]["creationTimestamp"] = json!("2026-11-01T00:00:00Z");
    let mut states = BTreeMap::new();
    for Finding { language, reason, .. } in &injected.outcome.findings {
        let state = match reason {
            Reason::SwitchedOff { .. } => continue,
            Reason::Injected => State::Injected,
            Reason::AlreadyInjected { .. } => State::Foreign,
            _ => State::Skipped,
        };
        let known = states.entry(*language).or_insert(state);
        *known = state.min(*known);
    }
    (pod, states)
}

#[test]
fn states_are_those_that_the_review_has_decided() {
    let mut seen = BTreeMap::new();
    for seed in 0..PODS {
        let generated = generate(seed);
        let settings = Settings { languages: LanguageSet::all(), stamp: true, ..Settings::default() };
        let mut cluster = Cluster { settings, objects: vec![generated.instrumentation] };
        cluster.objects[0]["metadata"]["namespace"] = json!("shop");
        let known = Known::of(&cluster.objects, &DefaultImages::default());
        let (pod, expected) = admitted(&cluster, &known, &generated.pod, "a");
        let running = RunningPod::read(&pod).expect("a running pod");
        let states = |pods: Vec<RunningPod>| -> BTreeMap<_, _> {
            let mut census = Census::default();
            for pod in pods {
                assert!(census.put(pod));
            }
            let report = report_knowing(&cluster, &known.catalogue, &census);
            rows(&report).into_iter().map(|(language, _, state, _)| (language, state)).collect()
        };
        let explained = states(vec![running.clone()]);
        let metadata = RunningPod::of_metadata(&pod["metadata"]).expect("a running pod");
        assert_eq!(states(vec![metadata, running]), explained, "seed {seed}: {pod}");
        assert_eq!(explained, expected, "seed {seed}: {pod}\n{}", cluster.objects[0]);
        for state in expected.into_values() {
            *seen.entry(state).or_insert(0) += 1;
        }
    }
    assert!(seen[&State::Injected] > 1000 && seen[&State::Skipped] > 500, "{seen:?}");
}

/// Such as those of a Ray cluster, a Spark application or a workflow.
#[test]
fn pods_of_one_owner_with_several_templates_have_their_own_states() {
    let mut generated = generate(7);
    generated.instrumentation["metadata"]["namespace"] = json!("shop");
    let settings = Settings { languages: LanguageSet::all(), stamp: true, ..Settings::default() };
    let cluster = Cluster { settings, objects: vec![generated.instrumentation] };
    let known = Known::of(&cluster.objects, &DefaultImages::default());
    let (mut census, mut expected) = (Census::default(), BTreeMap::new());
    for seed in 0..OF_ONE {
        let (mut pod, states) = admitted(&cluster, &known, &generate(seed).pod, &format!("pod-{seed}"));
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "ray.io/v1", "kind": "RayCluster",
            "name": "a", "uid": "a", "controller": true}]);
        census.put(RunningPod::of_metadata(&pod["metadata"]).expect("a running pod"));
        census.put(RunningPod::read(&pod).expect("a running pod"));
        for key in states {
            *expected.entry(key).or_insert(0) += 1;
        }
    }
    let report = report_knowing(&cluster, &known.catalogue, &census);
    let [workload] = &report.workloads[..] else { panic!("{report:?}") };
    let states = |row: &LanguageRow| State::ALL.map(|state| ((row.language, state), row.pods.of(state)));
    let found = workload.languages.iter().flat_map(states).filter(|(_, count)| *count > 0);
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
}
