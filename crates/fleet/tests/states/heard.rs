//! Whether data of injected pods arrives.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};
use otel_webhook_fleet::{
    census::Census,
    heard::{self, Data, Heard, Signals, Unknown},
    pod::RunningPod,
};
use serde_json::{Value, json};

use crate::support::{Cluster, ENDPOINT, pod, report_hearing};

const METRICS: Signals = Signals { metrics: true, spans: false };
const SPANS: Signals = Signals { metrics: false, spans: true };
/// Minutes.
const PATIENCE: i64 = 5;
/// What a source reports of the pod.
const OWN: &str = "shop.p.app-java";

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(3600 + 60 * minute).expect("a time")
}

/// An injected pod that is Ready since this minute, with these variables in addition.
fn ready(languages: &[&str], since: Option<i64>, variables: &[(&str, &str)]) -> Value {
    let mut whole = pod(languages);
    for container in whole["spec"]["containers"].as_array_mut().expect("containers") {
        let env = variables.iter().map(|(name, value)| json!({"name": name, "value": value}));
        container["env"] = env.collect();
    }
    let mut whole = Cluster::new(ENDPOINT).injected(whole);
    let condition =
        |since| json!({"type": "Ready", "status": "True", "lastTransitionTime": at(since).to_string()});
    whole["status"] = json!({"conditions": since.map(condition).into_iter().collect::<Vec<_>>()});
    whole
}

fn census(pods: &[Value]) -> Census {
    let mut census = Census::default();
    for pod in pods {
        census.put(RunningPod::read(pod).expect("a running pod"));
    }
    census
}

fn reported(ids: &[&str]) -> HashSet<u64> {
    ids.iter().map(|id| heard::instance(id)).collect()
}

fn asking(signals: Signals) -> Heard {
    Heard::new(SignedDuration::from_mins(PATIENCE), signals)
}

/// The state of the first pod with an agent of the language.
fn state(heard: &Heard, census: &Census, language: &str) -> Data {
    let group = census.groups().next().expect("a workload");
    heard.of(group, &group.members[0], language)
}

#[test]
fn a_pod_is_silent_only_if_it_could_have_been_heard() {
    let none: &[(&str, &str)] = &[];
    let unknown = Data::Unknown;
    let silent = Data::Silent(at(0));
    let instance = [("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=mine")];
    let attribute = [("OTEL_RESOURCE_ATTRIBUTES", "team=a")];
    let off = [("OTEL_METRICS_EXPORTER", "none"), ("OTEL_TRACES_EXPORTER", "none")];
    for (what, signals, languages, since, variables, expected) in [
        ("not Ready", METRICS, "java", None, none, unknown(Unknown::Waiting)),
        ("Ready for a moment", METRICS, "java", Some(6), none, unknown(Unknown::Waiting)),
        ("Ready for long", METRICS, "java", Some(0), none, silent),
        ("other attributes", METRICS, "java", Some(0), &attribute, silent),
        ("another instance", METRICS, "java", Some(0), &instance, unknown(Unknown::OwnInstanceId)),
        ("no SDK", METRICS, "java", Some(0), &[("OTEL_SDK_DISABLED", "True")], unknown(Unknown::SdkDisabled)),
        ("an SDK", METRICS, "java", Some(0), &[("OTEL_SDK_DISABLED", "false")], silent),
        ("nothing", METRICS, "java", Some(0), &off, unknown(Unknown::NotExported)),
        (
            "no metrics",
            METRICS,
            "java",
            Some(0),
            &[("OTEL_METRICS_EXPORTER", "none")],
            unknown(Unknown::NotExported),
        ),
        ("spans are seen", SPANS, "java", Some(0), &[("OTEL_METRICS_EXPORTER", "none")], silent),
        ("two exporters", METRICS, "java", Some(0), &[("OTEL_METRICS_EXPORTER", "console, otlp")], silent),
        (
            "no span",
            SPANS,
            "java",
            Some(0),
            &[("OTEL_TRACES_SAMPLER", "always_off")],
            unknown(Unknown::NotExported),
        ),
        (
            "a ratio of 0",
            SPANS,
            "java",
            Some(0),
            &[("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "0")],
            unknown(Unknown::NotExported),
        ),
        (
            "a ratio",
            SPANS,
            "java",
            Some(0),
            &[("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "0.1")],
            silent,
        ),
        ("metrics all the same", METRICS, "java", Some(0), &[("OTEL_TRACES_SAMPLER", "always_off")], silent),
        ("an agent without metrics", METRICS, "go", Some(0), none, unknown(Unknown::NotExported)),
        ("spans of Go", SPANS, "go", Some(0), none, silent),
        (
            "a file",
            METRICS,
            "java",
            Some(0),
            &[("OTEL_CONFIG_FILE", "/otel.yaml")],
            unknown(Unknown::NotExported),
        ),
        ("Node.js", METRICS, "nodejs", Some(0), none, silent),
    ] {
        let mut census = census(&[ready(&[languages], since, variables)]);
        let mut heard = asking(signals);
        heard.take(Some(&HashSet::new()), at(0), &mut census);
        heard.take(Some(&HashSet::new()), at(8), &mut census);
        assert_eq!(state(&heard, &census, languages), expected, "{what}");
    }
}

#[test]
fn what_a_reference_decides_is_unknown() {
    let mut pod = ready(&["java"], Some(0), &[]);
    let source = json!({"configMapKeyRef": {"name": "telemetry", "key": "disabled"}});
    let env = pod["spec"]["containers"][0]["env"].as_array_mut().expect("variables");
    env.push(json!({"name": "OTEL_SDK_DISABLED", "valueFrom": source}));
    let mut census = census(&[pod]);
    let mut heard = asking(METRICS);
    heard.take(Some(&HashSet::new()), at(0), &mut census);
    heard.take(Some(&HashSet::new()), at(8), &mut census);
    assert_eq!(state(&heard, &census, "java"), Data::Unknown(Unknown::NotExported));
    heard.take(Some(&reported(&[OWN])), at(9), &mut census);
    assert_eq!(state(&heard, &census, "java"), Data::Heard(at(9)), "what is heard is known all the same");
}

#[test]
fn what_a_source_reports_decides_with_the_patience() {
    /// What is reported at a minute; `None` if the source does not answer.
    type Asked = (i64, Option<&'static [&'static str]>);
    let waiting = Data::Unknown(Unknown::Waiting);
    let unavailable = Data::Unknown(Unknown::SourceUnavailable);
    let cases: &[(&str, &[Asked], Data)] = &[
        ("heard", &[(0, Some(&[OWN]))], Data::Heard(at(0))),
        ("others are heard", &[(0, Some(&["shop.p.app", "shop.q.app-java", "x"])), (4, Some(&[]))], waiting),
        ("never heard", &[(0, Some(&[])), (5, Some(&[]))], Data::Silent(at(0))),
        (
            "heard again and again",
            &[(0, Some(&[OWN])), (4, Some(&[OWN])), (8, Some(&[OWN]))],
            Data::Heard(at(0)),
        ),
        ("a gap", &[(0, Some(&[OWN])), (4, Some(&[])), (5, Some(&[]))], Data::Heard(at(0))),
        ("a long gap", &[(0, Some(&[OWN])), (3, Some(&[OWN])), (9, Some(&[]))], Data::Silent(at(3))),
        ("back", &[(0, Some(&[OWN])), (9, Some(&[])), (10, Some(&[OWN]))], Data::Heard(at(10))),
        ("not asked for long", &[(20, Some(&[])), (24, Some(&[]))], waiting),
        ("never answered", &[(0, None), (20, None)], unavailable),
        ("no answer any more", &[(0, Some(&[OWN])), (1, None)], unavailable),
        ("no answer of one that was silent", &[(0, Some(&[])), (9, Some(&[])), (10, None)], unavailable),
        ("after an outage", &[(0, Some(&[OWN])), (1, None), (20, Some(&[])), (24, Some(&[]))], waiting),
        (
            "long after it",
            &[(0, Some(&[OWN])), (1, None), (20, Some(&[])), (25, Some(&[]))],
            Data::Silent(at(0)),
        ),
    ];
    for (what, asked, expected) in cases {
        let mut census = census(&[ready(&["java"], Some(0), &[])]);
        let mut heard = asking(METRICS);
        for (minute, ids) in *asked {
            heard.take(ids.map(reported).as_ref(), at(*minute), &mut census);
        }
        assert_eq!(state(&heard, &census, "java"), *expected, "{what}");
    }
}

#[test]
fn only_workloads_of_which_something_else_is_known_are_counted_again() {
    let mut second = ready(&["java"], Some(0), &[]);
    for field in ["name", "uid"] {
        second["metadata"][field] = json!("q");
    }
    let mut census = census(&[ready(&["java"], Some(0), &[]), second]);
    let mut heard = asking(METRICS);
    let own = reported(&[OWN]);
    let mut changed = |ids: Option<&HashSet<u64>>, minute| {
        census.take_changed();
        heard.take(ids, at(minute), &mut census);
        census.take_changed().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(changed(Some(&own), 0).len(), 2, "the source answers");
    assert_eq!(changed(Some(&own), 4), Vec::<String>::new(), "one is heard still, one is waited for");
    assert_eq!(changed(Some(&own), 5), ["shop/Pod/q"], "it is silent");
    assert_eq!(changed(None, 6).len(), 2);
    assert_eq!(changed(None, 7), Vec::<String>::new());
}

#[test]
fn the_pods_of_a_workload_are_counted_by_what_is_heard() {
    let cluster = Cluster::new(ENDPOINT);
    let pods: Vec<_> = ["p", "q", "r"]
        .into_iter()
        .zip([Some(0), Some(0), None])
        .map(|(name, since)| {
            let mut pod = ready(&["java", "nodejs"], since, &[]);
            pod["metadata"]["name"] = json!(name);
            pod["metadata"]["uid"] = json!(name);
            let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true});
            pod["metadata"]["ownerReferences"] = json!([owner]);
            pod
        })
        .collect();
    let mut census = census(&pods);
    let mut heard = asking(METRICS);
    let ids = reported(&[OWN, "shop.p.app-nodejs", "shop.q.app-java"]);
    heard.take(Some(&ids), at(1), &mut census);
    heard.take(Some(&ids), at(6), &mut census);
    let report = report_hearing(&cluster, &census, Some(&heard));
    let counts = report.instrumentations[0].pods;
    assert_eq!((counts.heard, counts.silent), (Some(1), Some(1)), "one of two languages of q is not heard");
    let [java, mut nodejs] = [0, 1].map(|at| json!(report.workloads[0].languages[at].data));
    assert_eq!(nodejs["cause"]["code"], "PortContradictsProtocol", "{nodejs}");
    nodejs.as_object_mut().expect("an object").remove("cause");
    assert_eq!(
        java,
        json!({"heard": 2, "silent": 0, "unknown": 1, "since": "1970-01-01T01:01:00Z", "why": "Waiting"})
    );
    assert_eq!(
        nodejs,
        json!({"heard": 1, "silent": 1, "unknown": 1, "since": "1970-01-01T01:00:00Z", "why": "Waiting"})
    );
    let report = report_hearing(&cluster, &census, None);
    assert_eq!(report.instrumentations[0].pods.heard, None);
    assert_eq!(report.workloads[0].languages[0].data, None);
}

#[test]
fn other_pods_of_the_namespace_say_why_one_is_silent() {
    let cluster = Cluster::new(ENDPOINT);
    let pod = |name: &str| {
        let mut pod = ready(&["java"], Some(0), &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["uid"] = json!(name);
        pod
    };
    let mut census = census(&["p", "q", "r"].map(pod));
    let mut heard = asking(METRICS);
    for (minute, ids, expected) in [
        (6, &[OWN][..], Some(("WorkloadSilent", "data of 1 other pods of namespace \"shop\" arrives"))),
        (12, &[], Some(("NamespaceSilent", "no data of the 3 pods of namespace \"shop\" arrives"))),
        (13, &[OWN, "shop.q.app-java", "shop.r.app-java"], None),
    ] {
        heard.take(Some(&reported(ids)), at(minute - 6), &mut census);
        heard.take(Some(&reported(ids)), at(minute), &mut census);
        let report = report_hearing(&cluster, &census, Some(&heard));
        let last = report.workloads[2].languages[0].data.as_ref().expect("it is asked");
        let cause = last.cause.as_ref().map(|one| (one.cause.code(), one.cause.to_string()));
        assert_eq!(cause.as_ref().map(|(code, _)| *code), expected.map(|(code, _)| code), "minute {minute}");
        let sentence = cause.map(|(_, sentence)| sentence).unwrap_or_default();
        assert!(sentence.contains(expected.map_or("", |(_, sentence)| sentence)), "{sentence}");
        let silent: Vec<_> =
            report.instrumentations[0].workloads.iter().map(|one| (&*one.reason, one.silent)).collect();
        let count = report.instrumentations[0].pods.silent.expect("it is asked");
        assert_eq!(silent, vec![("Silent", Some(1)); count], "minute {minute}");
    }
}

#[test]
fn what_a_source_reports_takes_no_room_but_for_known_instances() {
    const PODS: usize = 50_000;
    let whole = RunningPod::read(&ready(&["java"], Some(0), &[])).expect("a running pod");
    let mut census = Census::default();
    let mut heard = asking(METRICS);
    for number in 0..PODS {
        let mut pod = whole.clone();
        (pod.name, pod.uid) = (format!("import-{number}"), number.to_string());
        census.put(pod);
    }
    let own = (0..PODS).map(|number| heard::instance(&format!("shop.import-{number}.app-java")));
    let ids: HashSet<u64> = own.chain((0..PODS).map(|number| heard::instance(&number.to_string()))).collect();
    let kept = allocation_counter::measure(|| {
        heard.take(Some(&ids), at(1), &mut census);
        census.take_changed();
    });
    println!("{} bytes at most, {} bytes kept", kept.bytes_max, kept.bytes_current);
    assert!(kept.bytes_max <= 20 << 20, "{} bytes at most", kept.bytes_max);
    assert!(kept.bytes_current <= 4 << 20, "{} bytes", kept.bytes_current);
    assert_eq!(state(&heard, &census, "java"), Data::Heard(at(1)));
    heard.take(Some(&ids), at(2), &mut census);
    census.keep(&HashSet::new());
    let freed = allocation_counter::measure(|| {
        heard.take(Some(&ids), at(3), &mut census);
    });
    assert!(freed.bytes_current < -1 << 20, "{} bytes", freed.bytes_current);
}
