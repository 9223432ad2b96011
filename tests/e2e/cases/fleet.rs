//! Day two: what runs without the present agents, as the controller tells it.

use otel_webhook_testkit::{objects::items, until::until};
use serde_json::{Value, json};

use super::status;
use crate::{
    audit,
    cluster::{Cluster, LIMIT, java},
    controller::{self, ACCOUNT, Controller, deployment},
};

const SHOP: &str = "fleet-shop";

/// Pods that were created while the webhook was away are missed, those of a changed Instrumentation are stale, and
/// nothing is written while nothing changes.
pub fn missed_and_stale(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    // Within one second, which of two objects is older is not known.
    let created = cluster.get(SHOP, &["otelinst", "default"])["metadata"]["creationTimestamp"].clone();
    let created: jiff::Timestamp = created.as_str().expect("a time").parse().expect("a time");
    until("the next second", LIMIT, || {
        (jiff::Timestamp::now().as_second() > created.as_second()).then_some(())
    });
    cluster.apply(&deployment(SHOP, "injected", 3));
    cluster.pods_of(SHOP, "app=injected", 3);
    let stopped = cluster.webhook.stop();
    cluster.apply(&deployment(SHOP, "missed", 100));
    cluster.pods_of(SHOP, "app=missed", 100);
    drop(stopped);

    let controller = Controller::new(cluster);
    controller.start();
    let found = controller.expect(SHOP, "default", &json!({"matched": 103, "injected": 3, "missed": 100}));
    let worst = json!([{"namespace": SHOP, "kind": "Deployment", "name": "missed", "stale": 0, "missed": 100,
        "failing": 0, "reason": "WebhookNotReached"}]);
    assert_eq!(found["status"]["workloads"], worst);
    assert_eq!(conditions(&found), [("Ready", "True", "Valid"), ("UpToDate", "False", "PodsOutdated")]);
    let table = cluster.plane.kubectl(&["get", "otelinst", "--namespace", SHOP]).stdout;
    let heads = ["MATCHED", "INJECTED", "STALE", "MISSED"];
    assert!(heads.iter().all(|head| table.contains(head)) && table.contains("103"), "{table}");
    events(cluster, "missed", "Missed");

    let page = controller.page();
    assert!(page.contains("Deployment/missed") && page.contains("100 missed"), "{page}");

    cluster.instrumentation(SHOP, "default", &json!({"exporter": {"endpoint": "http://other:4317"}}));
    let found = controller.expect(SHOP, "default", &json!({"matched": 103, "stale": 3, "missed": 100}));
    assert_eq!(found["status"]["conditions"][0]["observedGeneration"], found["metadata"]["generation"]);
    status::agrees_with_controller(cluster, &found);
    events(cluster, "injected", "Outdated");

    let writes = || audit::count(cluster, ACCOUNT, "patch", "instrumentations");
    let before = writes();
    controller.stop();
    controller.start();
    until("all pods are confirmed", LIMIT, || {
        let missed = controller.metric("otel_webhook_pods{state=\"missed\",language=\"java\"}");
        (missed == Some(100)).then_some(())
    });
    controller.stop();
    assert_eq!(writes(), before, "the status was as the next leader found it");
    let (asked, granted) = (audit::asked(cluster, ACCOUNT), audit::granted(&controller::roles()));
    let more: Vec<_> = asked.difference(&granted).collect();
    assert!(more.is_empty(), "asked for but not granted: {more:?}");
}

/// Pods without annotations are missed once a selector opts them in, and injected once they are replaced.
pub fn opted_in(_: &Cluster) {
    const JAVA: &str = "otel_webhook_pods{state=\"missed\",language=\"java\"}";
    let cluster = &Cluster::start();
    cluster.namespace(SHOP, &[]);
    let mut silent = deployment(SHOP, "silent", 3);
    silent["spec"]["template"]["metadata"]["annotations"] = json!({});
    cluster.apply(&silent);
    cluster.pods_of(SHOP, "app=silent", 3);
    let controller = Controller::new(cluster);
    controller.start();
    until("all pods are known", LIMIT, || (controller.metric(JAVA) == Some(0)).then_some(()));
    let selector = json!({"matchLabels": {"app": "silent"}});
    cluster.instrumentation(SHOP, "default", &json!({"inject": ["java"], "selector": selector}));
    let found = controller.expect(SHOP, "default", &json!({"matched": 3, "missed": 3}));
    status::agrees_with_controller(cluster, &found);
    assert!(cluster.plane.kubectl(&["delete", "pods", "--all", "--namespace", SHOP, "--wait=false"]).ok);
    let found = controller.expect(SHOP, "default", &json!({"matched": 3, "injected": 3}));
    status::agrees_with_controller(cluster, &found);
    cluster.instrumentation(SHOP, "default", &json!({"selector": selector}));
    until("nothing opts them in", LIMIT, || {
        let stale = controller.metric("otel_webhook_pods{state=\"stale\",language=\"java\"}");
        (stale == Some(3)).then_some(())
    });
    controller.stop();
}

/// With --namespaces, it reads nothing of others, and does not take what it cannot see for missing.
pub fn one_namespace(_: &Cluster) {
    const FLAGS: (&str, &[&str]) = (SHOP, &["--namespaces=fleet-shop"]);
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    cluster.instrumented_namespace("fleet-other");
    let other = |name: &str| {
        let mut pod = java(name);
        pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-java"] =
            json!("fleet-other/default");
        pod
    };
    assert!(cluster.create(SHOP, &java("injected")).is_injected());
    assert!(cluster.create(SHOP, &other("of-another")).is_injected());
    cluster.create("fleet-other", &java("not-seen"));
    let stopped = cluster.webhook.stop();
    cluster.create(SHOP, &java("missed"));
    drop(stopped);
    let controller = Controller::of_namespace(cluster, FLAGS);
    controller.start();
    controller.expect(SHOP, "default", &json!({"matched": 2, "injected": 1, "missed": 1}));
    let metric =
        |state: &str| controller.metric(&format!("otel_webhook_pods{{state=\"{state}\",language=\"java\"}}"));
    let found = ["injected", "missed", "unconfirmed", "stale", "skipped"].map(metric);
    assert_eq!(found, [1, 1, 1, 0, 0].map(Some));
    let page = controller.page();
    let why = "the Instrumentations of namespace &quot;fleet-other&quot; are not among --namespaces";
    assert!(page.contains(why), "{page}");
    cluster.create(SHOP, &java("later"));
    controller.expect(SHOP, "default", &json!({"matched": 3, "injected": 2, "missed": 1}));
    controller.stop();
    let status = &cluster.get("fleet-other", &["otelinst", "default"])["status"];
    assert!(status.is_null(), "{status}");
    let granted = audit::granted(&controller::roles_of_namespace(SHOP));
    let more: Vec<_> = audit::asked(cluster, ACCOUNT).difference(&granted).cloned().collect();
    assert!(more.is_empty(), "asked for but not granted: {more:?}");
}

/// Makes the API server drop what is written to the status of Instrumentations, as with the operator's CRD.
/// `namespace` has one named "default".
pub fn drop_statuses(cluster: &Cluster, namespace: &str) {
    let name = ["customresourcedefinition", "instrumentations.opentelemetry.io"];
    let mut crd = cluster.get(namespace, &name);
    // What the operator's has of the status.
    let blocked = json!({"type": "object", "additionalProperties": {"type": "string"}});
    for version in crd["spec"]["versions"].as_array_mut().expect("versions") {
        version["schema"]["openAPIV3Schema"]["properties"]["status"] =
            json!({"type": "object", "properties": {"upgradeBlockedVersions": blocked}});
    }
    let ran = cluster.plane.kubectl_in(&["replace", "--filename", "-"], &crd.to_string());
    assert!(ran.ok, "{}", ran.stderr);
    until("the status is dropped", LIMIT, || {
        let patch = json!({"status": {"more": 1}}).to_string();
        let args = [
            "patch",
            "otelinst",
            "default",
            "--namespace",
            namespace,
            "--subresource=status",
            "--type=merge",
        ];
        let ran = cluster.plane.kubectl(&[&args[..], &["--patch", &patch]].concat());
        (ran.ok && cluster.get(namespace, &["otelinst", "default"])["status"]["more"].is_null()).then_some(())
    });
}

/// The operator's CRD drops the status: that is said once, and all else goes on.
pub fn operators_crd(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    drop_statuses(cluster, SHOP);
    let stopped = cluster.webhook.stop();
    cluster.apply(&deployment(SHOP, "missed", 3));
    cluster.pods_of(SHOP, "app=missed", 3);
    drop(stopped);

    let controller = Controller::new(cluster);
    controller.start();
    events(cluster, "missed", "Missed");
    let metric = "otel_webhook_pods{state=\"missed\",language=\"java\"}";
    assert_eq!(controller.metric(metric), Some(3));
    cluster.instrumentation("registered", "another", &json!({}));
    cluster.instrumentation(SHOP, "default", &json!({"exporter": {"endpoint": "http://other:4317"}}));
    let log = cluster.plane.dir().join("controller.log");
    let said = || {
        let text = std::fs::read_to_string(&log).expect("a log");
        text.lines().filter(|line| line.contains("drops the status")).count()
    };
    until("it is said", LIMIT, || (said() > 0).then_some(()));
    controller.stop();
    assert_eq!(said(), 1);
    let status = &cluster.get(SHOP, &["otelinst", "default"])["status"];
    assert!(status["pods"].is_null(), "{status}");
}

/// Each kind of pod is in its state, by the status and by the metrics.
pub fn each_state(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    let status = |pod: &Value| pod["metadata"]["annotations"]["otel-webhook/status"].clone();
    let with = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut pod = java(name);
        change(&mut pod);
        pod
    };
    let injected = cluster.create(SHOP, &java("injected")).pod;
    cluster.create(
        SHOP,
        &with("opted-out", &|pod| {
            pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-java"] = json!("false");
        }),
    );
    let stopped = cluster.webhook.stop();
    // The annotations of an injected pod on one that is not: a stamp alone proves nothing.
    cluster.create(
        SHOP,
        &with("copied", &|pod| {
            pod["metadata"]["annotations"]["otel-webhook/status"] = status(&injected);
        }),
    );
    cluster.create(
        SHOP,
        &with("skipped", &|pod| {
            pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-java"] = json!("absent");
        }),
    );
    // The operator's pod is ours without the stamp.
    cluster.create(
        SHOP,
        &with("foreign", &|pod| {
            pod["spec"]["containers"] = injected["spec"]["containers"].clone();
            pod["spec"]["initContainers"] = injected["spec"]["initContainers"].clone();
            pod["spec"]["volumes"] = injected["spec"]["volumes"].clone();
        }),
    );
    // One of another version of the product.
    cluster.create(
        SHOP,
        &with("later", &|pod| {
            pod["spec"] = injected["spec"].clone();
            let text = status(&injected).as_str().expect("a stamp").replace("v1:", "v2:");
            pod["metadata"]["annotations"]["otel-webhook/status"] = json!(text);
        }),
    );
    drop(stopped);

    let controller = Controller::new(cluster);
    controller.start();
    let counts = json!({"matched": 4, "injected": 1, "missed": 1, "foreign": 1, "unconfirmed": 1});
    status::agrees_with_controller(cluster, &controller.expect(SHOP, "default", &counts));
    let metric =
        |state: &str| controller.metric(&format!("otel_webhook_pods{{state=\"{state}\",language=\"java\"}}"));
    let found = ["missed", "skipped", "foreign", "unconfirmed", "stale"].map(metric);
    assert_eq!(found, [1, 1, 1, 1, 0].map(Some));

    // The next leader waits until the Lease of the one that was killed has ended, and counts the same.
    controller.kill();
    controller.start();
    assert_eq!(
        controller.metric("otel_webhook_controller_leader{lease=\"otel-webhook-controller\"}"),
        Some(1)
    );
    controller.expect(SHOP, "default", &counts);
    controller.stop();
}

fn conditions(object: &Value) -> Vec<(&str, &str, &str)> {
    items(&object["status"]["conditions"])
        .map(|condition| {
            let of = |field: &str| condition[field].as_str().unwrap_or_default();
            (of("type"), of("status"), of("reason"))
        })
        .collect()
}

/// Waits for the Event on a Deployment. There is one.
fn events(cluster: &Cluster, deployment: &str, reason: &str) {
    let uid = cluster.get(SHOP, &["deployment", deployment])["metadata"]["uid"].clone();
    let found = until(&format!("the Event {reason} on {deployment}"), LIMIT, || {
        let list = cluster.get(SHOP, &["events.events.k8s.io"]);
        let own = items(&list["items"])
            .filter(|event| event["regarding"]["uid"] == uid && event["reason"] == reason);
        let own: Vec<Value> = own.cloned().collect();
        (!own.is_empty()).then_some(own)
    });
    assert_eq!(found.len(), 1, "{found:?}");
    let note = found[0]["note"].as_str().expect("a note");
    assert!(note.starts_with("java: "), "{note}");
}
