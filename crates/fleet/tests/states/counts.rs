//! How pods are counted, also for a user who may not read everything.

use std::collections::HashMap;

use otel_webhook_fleet::{
    census::Census,
    count::{self, Changed, Counted, Counter, Known},
    coverage::coverage,
    next::{self, Doubts, NoDoubts, Separated},
    pod::RunningPod,
    state::State,
};
use otel_webhook_inject::Finding;
use serde_json::{Value, json};

use crate::support::{Cluster, ENDPOINT, pod, report, report_of, report_with, rows};

#[test]
fn pods_are_counted_by_workload_and_by_instrumentation() {
    let (before, now) = (Cluster::new(ENDPOINT), Cluster::new("http://other:4317"));
    let of = |mut pod: Value, deployment: &str, number: usize| {
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{deployment}-5d"),
            "uid": deployment, "controller": true});
        pod["metadata"]["name"] = json!(format!("{deployment}-5d-{number}"));
        pod["metadata"]["uid"] = json!(format!("{deployment}-{number}"));
        pod["metadata"]["labels"]["pod-template-hash"] = json!("5d");
        pod["metadata"]["ownerReferences"] = json!([owner]);
        pod
    };
    let two = ["java", "nodejs"];
    let mut pods = Vec::new();
    for number in 0..3 {
        pods.push(of(before.injected(pod(&two)), "old", number));
        pods.push(of(now.injected(pod(&two)), "new", number));
    }
    pods.push(of(pod(&two), "old", 3));
    let unread = RunningPod::of_metadata(&of(pod(&two), "new", 3)["metadata"]).expect("a running pod");
    let report = report(&now, pods.iter().filter_map(RunningPod::read).chain([unread]));

    let [instrumentation] = &report.instrumentations[..] else { panic!("{report:?}") };
    let counts = json!({"matched": 8, "injected": 3, "stale": 3, "missed": 1, "skipped": 0, "foreign": 0,
        "unconfirmed": 1, "failing": 0});
    assert_eq!(json!(instrumentation.pods), counts, "once for both languages");
    assert_eq!(
        json!(instrumentation.workloads),
        json!([{"namespace": "shop", "kind": "Deployment", "name": "old", "stale": 3, "missed": 1, "failing": 0,
            "reason": "WebhookNotReached"}])
    );
    let rows: Vec<_> =
        report.workloads.iter().map(|row| (&*row.workload.name, row.pods, row.state)).collect();
    assert_eq!(rows, [("new", 4, State::Unconfirmed), ("old", 4, State::Missed)]);
    assert_eq!(
        report.workloads[1].command.as_deref(),
        Some("kubectl rollout restart deployment/old -n shop")
    );
    assert_eq!(report.workloads[0].command, None);
    assert_eq!(count::sentence(instrumentation.pods), "8 pods: 3 injected, 1 unconfirmed, 3 stale, 1 missed");
}

/// It stays unknown whether such a pod is up to date, so nothing waits for it.
#[test]
fn pods_whose_hash_is_of_another_version_are_apart_from_those_that_are_not_read_yet() {
    let (before, now) = (Cluster::new(ENDPOINT), Cluster::new("http://other:4317"));
    let of = |mut pod: Value, name: &str, second: u8| {
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["uid"] = json!(name);
        pod["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T00:00:{second:02}Z"));
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db", "controller": true}]);
        pod
    };
    let mut other = of(now.injected(pod(&["java"])), "db-0", 1);
    let status = &mut other["metadata"]["annotations"]["otel-webhook/status"];
    *status = json!(status.as_str().expect("a stamp").replace("v1:", "v2:"));
    let stale = of(before.injected(pod(&["java"])), "db-1", 2);
    let unread = of(pod(&["java"]), "db-2", 3);
    let mut census = Census::default();
    for pod in [&other, &stale] {
        census.put(RunningPod::read(pod).expect("a running pod"));
    }
    let count = |census: &Census| {
        let (catalogue, created) = (now.catalogue(), HashMap::new());
        let around = next::Around { catalogue: &catalogue, settings: &now.settings };
        let known = Known { around, created: &created, is_selected: &|_, _, _| true, heard: None };
        let counted = count::count_with(census, &known, &NoDoubts);
        let [pods] = &counted.pods[..] else { panic!("{counted:?}") };
        (pods.outdated.len(), pods.unconfirmed, pods.unknown.map(|at| at.to_string()))
    };
    let unknown = Some("2026-01-01T00:00:01Z".to_owned());
    assert_eq!(count(&census), (1, 0, unknown.clone()));
    census.put(RunningPod::of_metadata(&unread["metadata"]).expect("a running pod"));
    assert_eq!(count(&census), (1, 1, unknown));
}

#[test]
fn the_coverage_of_a_namespace_counts_all_of_its_running_pods() {
    let (before, now) = (Cluster::new(ENDPOINT), Cluster::new("http://other:4317"));
    let mut census = Census::default();
    for (namespace, name, mut pod) in [
        ("shop", "stale", before.injected(pod(&["java", "nodejs"]))),
        ("shop", "missed", pod(&["java"])),
        ("shop", "not-opted-in", pod(&[])),
        ("tools", "alone", pod(&[])),
    ] {
        pod["metadata"]["namespace"] = json!(namespace);
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["uid"] = json!(name);
        census.put(RunningPod::read(&pod).expect("a running pod"));
    }
    let team = |namespace: &str| (namespace == "shop").then(|| "sales".to_owned());
    let rows = coverage(&census, &report_of(&now, &census).workloads, team);
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (&*row.namespace, row.team.as_deref(), row.pods, row.opted_in, row.with_agent))
        .collect();
    assert_eq!(rows, [("shop", Some("sales"), 3, 2, 1), ("tools", None, 1, 0, 0)]);
}

/// Nothing is readable but the Instrumentation of the pod.
struct Unreadable {
    /// Whether the result for Java depends on something else.
    java: bool,
    /// Whether the annotations of the namespace are not readable.
    namespace: bool,
}

impl Doubts for Unreadable {
    fn separate(&self, _: &str, mut findings: Vec<Finding>) -> Separated {
        let why = || "it is hidden".to_owned();
        let is_certain = |finding: &Finding| !(self.java && finding.language == "java");
        let unknown = if findings.iter().all(is_certain) { Vec::new() } else { vec![("java", why())] };
        findings.retain(is_certain);
        Separated { certain: findings, unknown, others: self.namespace.then(why) }
    }

    fn configurations(&self) -> Option<&str> {
        Some("the flags are hidden")
    }
}

#[test]
fn what_depends_on_something_unreadable_is_unconfirmed() {
    let (before, now) = (Cluster::new(ENDPOINT), Cluster::new("http://other:4317"));
    let named = |mut pod: Value, name: &str| {
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["uid"] = json!(name);
        pod
    };
    let mut opted_out = named(before.injected(pod(&["nodejs"])), "f-by-namespace");
    let inject = "instrumentation.opentelemetry.io/inject-nodejs";
    opted_out["metadata"]["annotations"].as_object_mut().expect("some").remove(inject);
    let pods = [
        named(pod(&["java"]), "a-missed"),
        named(now.injected(pod(&["java"])), "b-injected"),
        named(before.injected(pod(&["java"])), "c-stale"),
        named(before.injected(pod(&["nodejs"])), "d-stale"),
        named(pod(&["nodejs"]), "e-missed"),
        opted_out,
    ];
    let found = |java, namespace| {
        let pods = pods.iter().filter_map(RunningPod::read);
        let report = report_with(&now, pods, true, &Unreadable { java, namespace });
        let rows = rows(&report).into_iter();
        rows.map(|(_, name, state, reason)| (name, state, reason.unwrap_or_default())).collect::<Vec<_>>()
    };
    let all = |expected: [(&str, State, &str); 6]| {
        expected.map(|(name, state, reason)| (name.to_owned(), state, reason.to_owned()))
    };
    let unconfirmed = State::Unconfirmed;
    let (unread, missed) = ("NotReadable", "WebhookNotReached");
    let flags_alone = [
        ("a-missed", State::Missed, missed),
        ("b-injected", State::Injected, ""),
        ("c-stale", unconfirmed, unread),
        ("d-stale", unconfirmed, unread),
        ("e-missed", State::Missed, missed),
        ("f-by-namespace", State::Stale, "NotOptedIn"),
    ];
    assert_eq!(found(false, false), all(flags_alone));
    let more = [
        ("a-missed", unconfirmed, unread),
        ("b-injected", unconfirmed, unread),
        ("c-stale", unconfirmed, unread),
        ("d-stale", unconfirmed, unread),
        ("e-missed", State::Missed, missed),
        ("f-by-namespace", unconfirmed, unread),
    ];
    assert_eq!(found(true, true), all(more));
}

#[test]
fn a_pod_that_would_not_reach_the_webhook_is_not_to_be_restarted() {
    let (before, now) = (Cluster::new(ENDPOINT), Cluster::new("http://other:4317"));
    for pod in [pod(&["java"]), before.injected(pod(&["java"]))] {
        let pods = |is_selected| {
            let mut pod = pod.clone();
            pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet",
                "name": "db", "uid": "db", "controller": true}]);
            let running = RunningPod::read(&pod).into_iter();
            report_with(&now, running, is_selected, &NoDoubts).workloads.remove(0)
        };
        assert!(pods(true).command.is_some());
        let row = pods(false);
        assert!(row.state.is_outdated(), "{row:?}");
        assert_eq!((row.languages[0].reason, row.command), (Some("NotSelected"), None));
    }
}

#[test]
fn the_order_of_pods_does_not_matter() {
    let (before, now) = (Cluster::new(ENDPOINT), Cluster::new("http://other:4317"));
    let of = |mut pod: Value, name: &str| {
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["uid"] = json!(name);
        pod["metadata"]["labels"] = json!({"controller-revision-hash": name});
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet",
            "name": "db", "uid": "db", "controller": true}]);
        pod
    };
    let mut young = of(pod(&["java"]), "db-2");
    young["metadata"]["creationTimestamp"] = json!("2026-12-01T00:00:00Z");
    let mut old = of(pod(&["java"]), "db-1");
    old["metadata"]["creationTimestamp"] = json!("2025-12-01T00:00:00Z");
    let mut pods = [of(before.injected(pod(&["java"])), "db-0"), old, young];
    let forward = report(&now, pods.iter().filter_map(RunningPod::read));
    pods.reverse();
    assert_eq!(forward, report(&now, pods.iter().filter_map(RunningPod::read)));
    let row = &forward.workloads[0].languages[0];
    assert_eq!(row.reason, Some("OlderThanInstrumentation"), "the first of two reasons");
    assert_eq!(row.since.map(|since| since.to_string()).as_deref(), Some("2025-12-01T00:00:00Z"));
    assert_eq!(forward.instrumentations[0].workloads[0].reason, "OlderThanInstrumentation");
}

/// Each field of a pod by which it could join the pods of another workload.
#[test]
fn a_pod_that_states_the_uid_of_anothers_owner_joins_no_other_workload() {
    let now = Cluster::new(ENDPOINT);
    let of = |mut pod: Value, [namespace, kind, owner, name]: [&str; 4]| {
        pod["metadata"]["namespace"] = json!(namespace);
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["uid"] = json!(name);
        pod["metadata"]["labels"]["controller-revision-hash"] = json!("1");
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": kind, "name": owner,
            "uid": "the same", "controller": true}]);
        pod
    };
    let honest = of(now.injected(pod(&["java"])), ["shop", "StatefulSet", "order", "order-0"]);
    let expected = report(&now, RunningPod::read(&honest).into_iter());
    for hostile in [
        ["other", "StatefulSet", "order", "a"],
        ["shop", "DaemonSet", "order", "a"],
        ["shop", "StatefulSet", "cart", "a"],
    ] {
        let stranger = of(pod(&["java"]), hostile);
        for pods in [[&honest, &stranger], [&stranger, &honest]] {
            let found = report(&now, pods.into_iter().filter_map(RunningPod::read));
            let row = found.workloads.iter().find(|row| row.workload == expected.workloads[0].workload);
            assert_eq!(row, Some(&expected.workloads[0]), "{hostile:?}");
            assert_eq!(found.workloads.len(), 2, "{hostile:?}");
        }
    }
}

/// A status names workloads of its own namespace alone: those of others must not take their places.
#[test]
fn workloads_of_the_instrumentations_namespace_come_first() {
    let of = |namespace: &str, number: usize| {
        let mut pod = pod(&["java"]);
        pod["metadata"]["namespace"] = json!(namespace);
        pod["metadata"]["name"] = json!(format!("{namespace}-{number}"));
        pod["metadata"]["uid"] = json!(format!("{namespace}-{number}"));
        // More pods for each of the others.
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet",
            "name": format!("{namespace}-{}", number / 2), "uid": format!("{namespace}-{}", number / 2), "controller": true}]);
        pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-java"] = json!("shop/inst");
        RunningPod::read(&pod).expect("a running pod")
    };
    let pods = (0..24).map(|number| of("bank", number)).chain([of("shop", 0)]);
    let found = report(&Cluster::new(ENDPOINT), pods);
    let row = &found.instrumentations[0];
    let named: Vec<_> = row.workloads.iter().map(|one| (&*one.workload.namespace, one.missed)).collect();
    assert_eq!(named, [&[("shop", 1)][..], &[("bank", 2); 9]].concat());
    assert_eq!(row.more, 3);
}

/// Pods of 20 workloads in each of three namespaces. Those of the last use the Instrumentation of the first.
#[test]
fn only_what_has_changed_is_counted_anew() {
    let namespaces = ["shop", "store", "elsewhere"];
    let of = |namespace: &str, number: usize, made: usize| {
        let mut pod = pod(&["java"]);
        let name = format!("order-{number}");
        pod["metadata"]["namespace"] = json!(namespace);
        pod["metadata"]["name"] = json!(format!("{name}-{made}"));
        pod["metadata"]["uid"] = json!(format!("{namespace}-{name}-{made}"));
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet",
            "name": name, "uid": name, "controller": true}]);
        if namespace == "elsewhere" {
            pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-java"] =
                json!("shop/inst");
        }
        RunningPod::read(&pod).expect("a running pod")
    };
    let mut cluster = Cluster::new(ENDPOINT);
    let mut other = cluster.objects[0].clone();
    other["metadata"]["namespace"] = json!("store");
    cluster.objects.push(other);
    let mut census = Census::default();
    for namespace in namespaces {
        (0..20).for_each(|number| assert!(census.put(of(namespace, number, 0))));
    }
    let mut own = Counter::new(true);
    let mut count = |cluster: &Cluster, census: &mut Census, changed: Changed<'_>, last: Counted| {
        let catalogue = cluster.catalogue();
        let around = next::Around { catalogue: &catalogue, settings: &cluster.settings };
        let known = Known { around, created: &HashMap::new(), is_selected: &|_, _, _| true, heard: None };
        let (found, workloads) = own.count(census, &known, &NoDoubts, &changed, last);
        let all = count::count(census, &known);
        assert_eq!((&found.report, &found.pods), (&all.report, &all.pods), "as when all are counted");
        (found, workloads)
    };
    let only = |namespaces: &[&'static str]| Changed::Namespaces(namespaces.iter().copied().collect());
    let (found, workloads) = count(&cluster, &mut census, Changed::Everything, Counted::default());
    assert_eq!((workloads, found.report.instrumentations[0].pods.missed), (60, 40));
    let (found, workloads) = count(&cluster, &mut census, only(&[]), found);
    assert_eq!(workloads, 0, "nothing has changed");

    census.put(of("shop", 3, 1));
    census.put(of("shop", 20, 0));
    let (found, workloads) = count(&cluster, &mut census, only(&[]), found);
    assert_eq!((workloads, found.report.workloads.len()), (2, 61));
    assert!(census.forget("shop-order-3-1") && census.forget("shop-order-20-0"));
    let (found, workloads) = count(&cluster, &mut census, only(&[]), found);
    assert_eq!((workloads, found.report.workloads.len()), (2, 60));

    cluster.objects[1]["spec"]["exporter"]["endpoint"] = json!("http://other:4317");
    let (found, workloads) = count(&cluster, &mut census, only(&["store"]), found);
    assert_eq!(workloads, 40, "those of the namespace, and those that read another one");
    cluster.objects[0]["metadata"]["annotations"] = json!({"otel-webhook/paused": "true"});
    let (found, workloads) = count(&cluster, &mut census, only(&["shop"]), found);
    assert_eq!((workloads, found.report.instrumentations[0].pods.skipped), (40, 40));
}
