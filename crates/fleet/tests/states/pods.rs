//! States of pods that the crate of the decision has injected into.

use crate::support::{Cluster, ENDPOINT, Row, pod, report, rows};
use otel_webhook_fleet::{
    census::Census,
    injected::{self, By},
    pod::RunningPod,
    state::State,
};
use otel_webhook_inject::language::LANGUAGES;
use serde_json::{Value, json};

#[test]
fn each_language_is_detected_with_and_without_the_stamp() {
    for language in LANGUAGES {
        for (stamp, by) in [(true, By::Webhook), (false, By::Operator)] {
            let pod = Cluster::new(ENDPOINT).with_stamp(stamp).injected(pod(&[language.name]));
            let found: Vec<_> =
                injected::agents(&pod).iter().map(|agent| (agent.language, agent.by)).collect();
            assert_eq!(found, [(language.name, by)], "{pod}");
        }
    }
}

#[test]
fn several_languages_are_detected() {
    for stamp in [true, false] {
        let cluster = Cluster::new(ENDPOINT).with_stamp(stamp);
        let names = |languages: &[&str]| {
            let found = injected::agents(&cluster.injected(pod(languages)));
            found.iter().map(|agent| agent.language).collect::<Vec<_>>()
        };
        assert_eq!(names(&["java", "go"]), ["java", "go"]);
        assert_eq!(names(&["nodejs", "sdk"]), ["nodejs", "sdk"]);
    }
}

#[test]
fn a_copied_annotation_and_a_collector_are_not_agents() {
    let mut pod = Cluster::new(ENDPOINT).injected(pod(&["java"]));
    pod["spec"]["initContainers"] = json!([]);
    pod["spec"]["containers"] = json!([{"name": "app"}, {"name": "otc-container"}]);
    assert_eq!(injected::agents(&pod), []);
    assert!(injected::has_collector(&pod));
}

/// The state of each pod, by the language.
fn states(cluster: &Cluster, pods: &[Value]) -> Vec<Row> {
    rows(&report(cluster, pods.iter().filter_map(RunningPod::read)))
}

#[test]
fn every_language_is_injected_then_stale_and_missed_without_agent() {
    let (before, after) = (Cluster::new(ENDPOINT), Cluster::new("http://other:4317"));
    for language in LANGUAGES {
        let bare = pod(&[language.name]);
        let injected = before.injected(bare.clone());
        let state = |cluster: &Cluster, pod: &Value| states(cluster, std::slice::from_ref(pod));
        let one = |state, reason: Option<&str>| {
            vec![(language.name, "p".to_owned(), state, reason.map(str::to_owned))]
        };
        assert_eq!(state(&before, &injected), one(State::Injected, None), "{injected}");
        assert_eq!(state(&after, &injected), one(State::Stale, Some("ConfigurationChanged")));
        assert_eq!(state(&before, &bare), one(State::Missed, Some("WebhookNotReached")));
    }
}

/// All agents of an Instrumentation are one language.
#[test]
fn a_pod_is_stale_if_one_of_several_agents_has_changed() {
    let before = Cluster::new(ENDPOINT);
    let mut both = pod(&["agent"]);
    both["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-agent"] = json!("php,ruby");
    let injected = before.injected(both);
    let one = |state, reason: Option<&str>| vec![("agent", "p".to_owned(), state, reason.map(str::to_owned))];
    let state = |cluster: &Cluster| states(cluster, std::slice::from_ref(&injected));
    assert_eq!(state(&before), one(State::Injected, None));
    for index in [0, 1] {
        let mut after = Cluster::new(ENDPOINT);
        after.objects[0]["spec"]["agents"][index]["image"] = json!("own:2");
        assert_eq!(state(&after), one(State::Stale, Some("ConfigurationChanged")), "agent {index}");
    }
}

#[test]
fn states_that_are_not_a_matter_of_the_present_configuration() {
    let cluster = Cluster::new(ENDPOINT);
    let injected = |name: &str, change: fn(&mut Value)| {
        let mut pod = cluster.injected(pod(&["java"]));
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["uid"] = json!(name);
        change(&mut pod);
        pod
    };
    let status = "otel-webhook/status";
    let bare = |name: &str, annotation: Value| {
        let mut pod = pod(&["java"]);
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["uid"] = json!(name);
        pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-java"] = annotation;
        pod
    };
    let mut forged = bare("a-forged", json!("true"));
    forged["metadata"]["annotations"][status] =
        cluster.injected(pod(&["java"]))["metadata"]["annotations"][status].clone();
    let mut ended = bare("z-ended", json!("true"));
    ended["status"] = json!({"phase": "Succeeded"});
    let mut mirror = bare("z-mirror", json!("true"));
    mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = json!("x");
    let pods = [
        forged,
        injected("b-operator", |pod| {
            pod["metadata"]["annotations"].as_object_mut().expect("some").remove("otel-webhook/status");
        }),
        injected("c-later", |pod| {
            let status = pod["metadata"]["annotations"]["otel-webhook/status"].as_str().expect("a stamp");
            pod["metadata"]["annotations"]["otel-webhook/status"] = json!(status.replace("v1:", "v2:"));
        }),
        injected("d-out", |pod| {
            pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-java"] = json!("false");
        }),
        bare("e-elsewhere", json!("missing")),
        bare("f-never", json!("false")),
        ended,
        mirror,
    ];
    let found = states(&cluster, &pods);
    let expected = [
        ("a-forged", State::Missed, Some("WebhookNotReached")),
        ("b-operator", State::Foreign, Some("OtherInjector")),
        ("c-later", State::Unconfirmed, Some("UnknownHash")),
        ("d-out", State::Stale, Some("NotOptedIn")),
        ("e-elsewhere", State::Skipped, Some("InstrumentationNotFound")),
    ];
    let expected =
        expected.map(|(name, state, reason)| ("java", name.to_owned(), state, reason.map(str::to_owned)));
    assert_eq!(found, expected);
}

#[test]
fn a_new_version_of_a_pod_is_read_for_its_status_alone() {
    let mut whole = Cluster::new(ENDPOINT).injected(pod(&["java"]));
    whole["metadata"]["resourceVersion"] = json!("1");
    let mut census = Census::default();
    let mut put = |pod: &Value| census.put(RunningPod::read(pod).expect("a running pod"));
    assert!(put(&whole));
    whole["metadata"]["resourceVersion"] = json!("2");
    assert!(!put(&whole), "nothing that is counted has changed");
    let name = "opentelemetry-auto-instrumentation-java";
    let waits = |message: &str| {
        json!({"initContainerStatuses": [{"name": name, "state": {"waiting":
        {"reason": "ErrImagePull", "message": message}}}]})
    };
    whole["status"] = waits("first");
    assert!(put(&whole));
    whole["status"] = waits("second");
    assert!(!put(&whole), "only the message has changed");
    assert!(census.is_failing("u") && census.is_read_at("u", "2") && !census.is_read_at("u", "3"));
    let template = census.template("u").expect("known");
    assert!(!census.is_proven(&template));
    whole["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    assert!(census.put(RunningPod::read(&whole).expect("a running pod")));
    assert!(census.is_proven(&template) && !census.is_failing("u"));
}

#[test]
fn a_pod_that_was_read_stays_read_until_it_is_gone() {
    let cluster = Cluster::new(ENDPOINT);
    let whole = cluster.injected(pod(&["java"]));
    let mut census = Census::default();
    let metadata = || RunningPod::of_metadata(&whole["metadata"]).expect("a running pod");
    census.put(metadata());
    assert!(!census.is_read("u"));
    census.put(RunningPod::read(&whole).expect("a running pod"));
    census.put(metadata());
    assert!(census.is_read("u"));
    assert_eq!(census.len(), 1);
    census.forget("u");
    assert!(census.is_empty() && census.groups().next().is_none());
}

#[test]
fn pods_that_a_selector_opts_in_have_the_same_states() {
    let (plain, opting) = (Cluster::new(ENDPOINT), Cluster::new(ENDPOINT).opting_in("java"));
    let changed = Cluster::new("http://other:4317").opting_in("java");
    let mut silent = pod(&[]);
    silent["spec"]["containers"] = json!([{"name": "app", "image": "app"}]);
    let injected = opting.injected(silent.clone());
    assert_ne!(injected, silent);
    let state = |cluster: &Cluster, pod: &Value| -> Vec<State> {
        states(cluster, std::slice::from_ref(pod)).into_iter().map(|(_, _, state, _)| state).collect()
    };
    assert_eq!(state(&opting, &silent), [State::Missed]);
    assert_eq!(state(&opting, &injected), [State::Injected]);
    assert_eq!(state(&changed, &injected), [State::Stale]);
    assert_eq!(state(&plain, &injected), [State::Stale], "nothing opts it in any longer");
    assert_eq!(state(&plain, &silent), []);
    let missed = rows(&report(&opting, [RunningPod::read(&silent).expect("a pod")].into_iter()));
    assert_eq!(missed[0].3.as_deref(), Some("Unknown"), "it does not opt in itself");
    let mut labelled = silent;
    labelled["metadata"]["labels"] = json!({"instrumentation.opentelemetry.io/inject-java": "true"});
    let missed = rows(&report(&plain, [RunningPod::read(&labelled).expect("a pod")].into_iter()));
    assert_eq!(missed[0].3.as_deref(), Some("WebhookNotReached"), "it opts in by its label");
}
