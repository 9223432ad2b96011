//! Day two: pods with missing or outdated agents, as the controller reports them.

use otel_webhook_testkit::{
    cluster::manifests::{deployment_of, template_asking},
    objects::items,
    until::until,
};
use serde_json::{Value, json};

use super::status;
use crate::{
    audit,
    cluster::{Cluster, asking, java},
    controller::{self, ACCOUNT, Controller, deployment},
};

const SHOP: &str = "fleet-shop";

/// Pods that were created while the webhook was unavailable are missed, those of a changed Instrumentation are stale, and
/// nothing is written while nothing changes.
pub fn missed_and_stale(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    status::after_the_second_of_the_instrumentation(cluster, SHOP);
    cluster.apply(&deployment(SHOP, "injected", 3));
    cluster.pods_of(SHOP, "app=injected", 3);
    cluster.missed(SHOP, "missed", 100);

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
    let wide = cluster.plane.kubectl(&["get", "otelinst", "--namespace", SHOP, "--output", "wide"]).stdout;
    let heads = ["SKIPPED", "HEARD", "READY", "RESTART", "FAILING"];
    assert!(heads.iter().all(|head| wide.contains(head)) && wide.contains("Valid"), "{wide}");
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
    until("all pods are confirmed", || (controller.java_pods(["missed"]) == [Some(100)]).then_some(()));
    controller.stop();
    assert_eq!(writes(), before, "the status was as the next leader found it");
    audit::asked_only_for(cluster, ACCOUNT, &controller::roles());
}

/// Pods without annotations are missed once a selector opts them in, and injected once they are replaced.
pub fn opted_in(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.namespace(SHOP, &[]);
    cluster.apply(&deployment_of(SHOP, 3, &template_asking("silent", &[])));
    cluster.pods_of(SHOP, "app=silent", 3);
    let controller = Controller::new(cluster);
    controller.start();
    until("all pods are known", || (controller.java_pods(["missed"]) == [Some(0)]).then_some(()));
    let selector = json!({"matchLabels": {"app": "silent"}});
    cluster.instrumentation(SHOP, "default", &json!({"inject": ["java"], "selector": selector}));
    let found = controller.expect(SHOP, "default", &json!({"matched": 3, "missed": 3}));
    status::agrees_with_controller(cluster, &found);
    cluster.run(&["delete", "pods", "--all", "--namespace", SHOP, "--wait=false"]);
    let found = controller.expect(SHOP, "default", &json!({"matched": 3, "injected": 3}));
    status::agrees_with_controller(cluster, &found);
    cluster.instrumentation(SHOP, "default", &json!({"selector": selector}));
    until("nothing opts them in", || (controller.java_pods(["stale"]) == [Some(3)]).then_some(()));
    controller.stop();
}

/// With --namespaces, it reads nothing of others, and does not take what it cannot see for missing.
pub fn one_namespace(_: &Cluster) {
    const FLAGS: (&str, &[&str]) = (SHOP, &["--namespaces=fleet-shop"]);
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    cluster.instrumented_namespace("fleet-other");
    let other = asking("of-another", &[("inject-java", "fleet-other/default")]);
    assert!(cluster.create(SHOP, &java("injected")).is_injected());
    assert!(cluster.create(SHOP, &other).is_injected());
    cluster.create("fleet-other", &java("not-seen"));
    let stopped = cluster.webhook.stop();
    cluster.create(SHOP, &java("missed"));
    drop(stopped);
    let controller = Controller::of_namespace(cluster, FLAGS);
    controller.start();
    controller.expect(SHOP, "default", &json!({"matched": 2, "injected": 1, "missed": 1}));
    let found = controller.java_pods(["injected", "missed", "unconfirmed", "stale", "skipped"]);
    assert_eq!(found, [1, 1, 1, 0, 0].map(Some));
    let page = controller.page();
    let why = "the Instrumentations of namespace &quot;fleet-other&quot; are not among --namespaces";
    assert!(page.contains(why), "{page}");
    cluster.create(SHOP, &java("later"));
    controller.expect(SHOP, "default", &json!({"matched": 3, "injected": 2, "missed": 1}));
    controller.stop();
    let status = &cluster.get("fleet-other", &["otelinst", "default"])["status"];
    assert!(status.is_null(), "{status}");
    audit::asked_only_for(cluster, ACCOUNT, &controller::roles_of_namespace(SHOP));
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
    until("the status is dropped", || {
        let args = ["patch", "otelinst", "default", "--subresource=status", "--type=merge", "--namespace"];
        let patch = [namespace, "--patch", r#"{"status":{"more":1}}"#];
        let ran = cluster.plane.kubectl(&[&args[..], &patch].concat());
        (ran.ok && cluster.get(namespace, &["otelinst", "default"])["status"]["more"].is_null()).then_some(())
    });
}

/// The operator's CRD drops the status: that is said once, and all else goes on.
pub fn operators_crd(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(SHOP);
    drop_statuses(cluster, SHOP);
    cluster.missed(SHOP, "missed", 3);

    let controller = Controller::new(cluster);
    controller.start();
    events(cluster, "missed", "Missed");
    assert_eq!(controller.java_pods(["missed"]), [Some(3)]);
    cluster.instrumentation("registered", "another", &json!({}));
    cluster.instrumentation(SHOP, "default", &json!({"exporter": {"endpoint": "http://other:4317"}}));
    let log = cluster.plane.dir().join("controller.log");
    let said = || {
        let text = std::fs::read_to_string(&log).expect("a log");
        text.lines().filter(|line| line.contains("drops the status")).count()
    };
    until("it is said", || (said() > 0).then_some(()));
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
    let injected = cluster.create(SHOP, &java("injected")).pod;
    cluster.create(SHOP, &asking("opted-out", &[("inject-java", "false")]));
    let stopped = cluster.webhook.stop();
    // The annotations of an injected pod on one that is not: a stamp alone proves nothing.
    let mut copied = java("copied");
    copied["metadata"]["annotations"]["otel-webhook/status"] = status(&injected);
    // The operator's pod is ours without the stamp.
    let mut foreign = java("foreign");
    for list in ["containers", "initContainers", "volumes"] {
        foreign["spec"][list] = injected["spec"][list].clone();
    }
    // One of another version of the product.
    let mut later = java("later");
    later["spec"] = injected["spec"].clone();
    let text = status(&injected).as_str().expect("a stamp").replace("v1:", "v2:");
    later["metadata"]["annotations"]["otel-webhook/status"] = json!(text);
    for pod in [copied, asking("skipped", &[("inject-java", "absent")]), foreign, later] {
        cluster.create(SHOP, &pod);
    }
    drop(stopped);

    let controller = Controller::new(cluster);
    controller.start();
    let counts = json!({"matched": 4, "injected": 1, "missed": 1, "foreign": 1, "unconfirmed": 1});
    status::agrees_with_controller(cluster, &controller.expect(SHOP, "default", &counts));
    let found = controller.java_pods(["missed", "skipped", "foreign", "unconfirmed", "stale"]);
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
    let [note] = &cluster.events(SHOP, deployment, reason)[..] else { panic!("several Events {reason}") };
    assert!(note.starts_with("java: "), "{note}");
}
