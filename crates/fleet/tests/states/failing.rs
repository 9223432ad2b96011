//! Failing pods, as they are counted and reported.

use crate::support::{Cluster, ENDPOINT, pod, report};
use otel_webhook_fleet::{
    count,
    pod::RunningPod,
    report::{FailureRow, Report, WorkloadRow},
    state::State,
};
use otel_webhook_inject::language::{LANGUAGES, Shape};
use serde_json::{Value, json};

/// A pod of the StatefulSet `db`.
fn named(mut pod: Value, name: &str, status: Value) -> Value {
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["uid"] = json!(name);
    // Each with its own template.
    pod["metadata"]["labels"]["controller-revision-hash"] = json!(name);
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db",
        "uid": "db", "controller": true}]);
    pod["status"] = status;
    pod
}

fn waits(list: &str, container: &str, reason: &str, message: &str) -> Value {
    json!({list: [{"name": container, "restartCount": 3, "state": {"waiting": {"reason": reason, "message": message}}}]})
}

fn ready() -> Value {
    json!({"conditions": [{"type": "Ready", "status": "True"}]})
}

fn loops() -> Value {
    waits("containerStatuses", "app-java", "CrashLoopBackOff", "back-off 10s")
}

fn counted(cluster: &Cluster, pods: &[Value]) -> Report {
    report(cluster, pods.iter().filter_map(RunningPod::read))
}

fn codes(row: &WorkloadRow) -> Vec<(&'static str, usize, bool)> {
    row.failures.iter().map(|row| (row.code, row.pods, row.is_counted)).collect()
}

#[test]
fn what_injection_adds_for_each_language_can_fail() {
    let cluster = Cluster::new(ENDPOINT);
    for language in LANGUAGES.iter().filter(|language| language.shape != Shape::Variables) {
        let injected = cluster.injected(pod(&[language.name]));
        let lists = [("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")];
        let mut added = 0;
        for (list, statuses) in lists {
            for container in injected["spec"][list].as_array().into_iter().flatten() {
                let name = container["name"].as_str().expect("a name");
                if name.starts_with("app-") {
                    continue;
                }
                added += 1;
                let status = waits(statuses, name, "ImagePullBackOff", "Back-off pulling image");
                let report = counted(&cluster, &[named(injected.clone(), "db-0", status)]);
                let row = &report.workloads[0];
                assert_eq!(
                    (row.state, row.failing),
                    (State::Injected, 1),
                    "in addition to its state: {name}"
                );
                assert_eq!(codes(row), [("ImagePullBackOff", 1, true)], "{name}");
                assert_eq!((row.failures[0].language, &*row.failures[0].container), (language.name, name));
                assert_eq!(report.instrumentations[0].pods.failing, 1);
            }
        }
        assert!(added > 0, "{}", language.name);
    }
}

#[test]
fn failing_pods_are_counted_in_addition_to_their_state() {
    let (before, now) = (Cluster::new(ENDPOINT), Cluster::new("http://other:4317"));
    let init = "opentelemetry-auto-instrumentation-java";
    let fails = || waits("initContainerStatuses", init, "ImagePullBackOff", "Back-off pulling image \"x\"");
    let pods = [
        named(before.injected(pod(&["java"])), "db-0", fails()),
        named(now.injected(pod(&["java"])), "db-1", fails()),
        named(now.injected(pod(&["java"])), "db-2", ready()),
    ];
    let report = counted(&now, &pods);
    let [instrumentation] = &report.instrumentations[..] else { panic!("{report:?}") };
    let sentence = "3 pods: 2 injected, 1 stale; 2 failing";
    assert_eq!(count::sentence(instrumentation.pods), sentence);
    assert_eq!(
        json!(instrumentation.workloads),
        json!([{"namespace": "shop", "kind": "StatefulSet", "name": "db", "stale": 1, "missed": 0, "failing": 2,
            "reason": "ImagePullBackOff"}])
    );
    let row = &report.workloads[0];
    assert_eq!((row.pods, row.failing, row.state), (3, 2, State::Stale));
    assert_eq!(row.languages[0].pods.failing, 2);
    let [failure] = &row.failures[..] else { panic!("{row:?}") };
    assert_eq!((failure.pods, &*failure.pod, failure.restarts), (2, "db-1", 3));
    assert_eq!(failure.message, "the image of the agent cannot be pulled");
    assert_eq!(failure.kubelet, "Back-off pulling image \"x\"");

    // The Instrumentation was corrected.
    let stale = counted(&now, &pods[..1]);
    let remedy = "a new pod would get another configuration: kubectl rollout restart statefulset/db -n shop";
    assert_eq!(stale.workloads[0].failures[0].remedy, remedy);
    let injected = counted(&now, &pods[1..2]);
    assert!(injected.workloads[0].failures[0].remedy.ends_with("(Instrumentation shop/inst)"));
}

/// The verdict about a container of the application that ends, with these other pods of the workload.
fn verdict(cluster: &Cluster, others: &[Value]) -> (FailureRow, usize) {
    let mut pods = vec![named(cluster.injected(pod(&["java"])), "db-0", loops())];
    pods.extend(others.iter().cloned());
    let mut row = counted(cluster, &pods).workloads.remove(0);
    (row.failures.remove(0), row.failing)
}

#[test]
fn the_agent_is_suspected_only_by_comparison() {
    let (before, cluster) = (Cluster::new("http://before:4317"), Cluster::new(ENDPOINT));
    let bare = |status| named(pod(&["java"]), "db-1", status);
    let without = |status| {
        let mut pod = bare(status);
        pod["metadata"]["annotations"] = json!({});
        pod
    };
    let mut other_image = bare(ready());
    other_image["spec"]["containers"][0]["image"] = json!("app:2");
    let earlier = |status| named(before.injected(pod(&["java"])), "db-1", status);
    let starting = json!({});
    for (others, code, failing, said) in [
        (vec![bare(ready())], "AgentSuspected", 1, "and none of 1 without the agent"),
        (vec![without(ready())], "AgentSuspected", 1, "and none of 1 without the agent"),
        (vec![earlier(ready())], "AgentSuspected", 1, "and none of 1 with another configuration"),
        (vec![bare(loops())], "ApplicationFails", 0, "as do 1 of 1 without the agent"),
        (vec![earlier(loops())], "CauseUnknown", 0, "to compare with"),
        (vec![bare(starting)], "CauseUnknown", 0, "to compare with"),
        (vec![other_image], "CauseUnknown", 0, "to compare with"),
        (vec![], "CauseUnknown", 0, "to compare with"),
    ] {
        let (row, counted) = verdict(&cluster, &others);
        assert_eq!((row.code, counted, row.is_counted), (code, failing, failing > 0), "{}", row.message);
        assert!(row.message.contains(said), "{}", row.message);
    }
}

/// What is not in a container of the application cannot be why it ends.
#[test]
fn a_container_without_an_agent_is_the_applications_own() {
    let cluster = Cluster::new(ENDPOINT);
    let mut injected = cluster.injected(pod(&["java"]));
    let containers = injected["spec"]["containers"].as_array_mut().expect("containers");
    containers.push(json!({"name": "proxy", "image": "proxy"}));
    let status = waits("containerStatuses", "proxy", "CrashLoopBackOff", "");
    let report = counted(&cluster, &[named(injected, "db-0", status)]);
    assert_eq!((report.workloads[0].failing, &report.workloads[0].failures[..]), (0, &[][..]));
}
