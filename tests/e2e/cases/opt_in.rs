//! Pods without annotations that the selector of an Instrumentation opts in, as a preview and `check` show them.

use otel_webhook_api::Version;
use otel_webhook_testkit::{
    cluster::manifests::{deployment_of, instrumentation, template_asking},
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::program::check;
use crate::registration::register_instrumentations;

/// What `check` says of the pods of a workload that a selector opts in: how many, and that they never arrive where the
/// webhook is registered only for pods that are annotated.
pub fn told(cluster: &Cluster) {
    let namespace = "opt-in-told";
    cluster.namespace(namespace, &[]);
    cluster.apply(&deployment_of(namespace, 2, &template_asking("order", &[])));
    cluster.pods_of(namespace, "app=order", 2);
    let selector = json!({"matchLabels": {"app": "order"}});
    let spec = json!({"inject": ["java"], "selector": selector, "java": {"image": "agent"}});
    let file = cluster.plane.dir().join("opt-in.json");
    for version in Version::ALL {
        let mut object = instrumentation(namespace, "orders", &spec);
        object["apiVersion"] = version.api_version().into();
        std::fs::write(&file, object.to_string()).expect("the scratch folder is writable");
        let file = file.to_str().expect("UTF-8");
        let ahead = check(&cluster.plane, &["--preview", "-n", namespace, "-f", file]);
        let [order] = &ahead.found[..] else { panic!("{version}: {ahead:?}") };
        let [pods, change] = [&order["pods"], &order["languages"][0]["change"]];
        assert_eq!((pods, change), (&json!(2), &json!("added")), "{version}: {ahead:?}");
        let note = "opted in by the selector of Instrumentation \"opt-in-told/orders\"";
        assert_eq!(order["languages"][0]["notes"], json!([note]), "{version}: {ahead:?}");
    }
    let without = check(&cluster.plane, &["--preview", "-n", namespace]);
    assert_eq!(without.found[0]["languages"], json!([]), "{without:?}");

    cluster.instrumentation(namespace, "orders", &spec);
    let annotated = Annotated::register(cluster);
    let found = until("check tells of it", || {
        let checked = check(&cluster.plane, &["-n", namespace]);
        checked.codes().contains(&"NotReviewed").then(|| checked.says("NotReviewed"))
    });
    let cause = "opts in to java, but the match condition of otel-webhook excludes pods without their own annotation or label";
    assert!(
        found.contains(cause) && found.contains("nor the selector of an Instrumentation is enough"),
        "{found}"
    );
    drop(annotated);
    let _only = cluster.webhook.restart_with(&["--only-annotated-pods"]);
    let _registered = register_instrumentations(&cluster.plane, &cluster.webhook, namespace);
    let args = ["apply", "--server-side", "--dry-run=server", "--filename", "-"];
    let object = instrumentation(namespace, "tried", &spec).to_string();
    let ran = cluster.plane.kubectl_in(&args, &object);
    assert!(
        ran.stderr.contains("Warning: spec.inject: has no effect: API servers send only pods"),
        "{}",
        ran.stderr
    );
}

/// The registration of the shape `annotated`, until it is dropped.
struct Annotated<'c> {
    cluster: &'c Cluster,
    before: Value,
}

impl<'c> Annotated<'c> {
    fn register(cluster: &'c Cluster) -> Self {
        let mut before = cluster.get("default", &["mutatingwebhookconfiguration", "otel-webhook"]);
        before["metadata"] = json!({"name": "otel-webhook", "labels": before["metadata"]["labels"].clone()});
        let mut changed = before.clone();
        let expression = "has(object.metadata.annotations)";
        changed["webhooks"][0]["matchConditions"] = json!([{"name": "opted-in", "expression": expression}]);
        cluster.apply(&changed);
        Self { cluster, before }
    }
}

impl Drop for Annotated<'_> {
    fn drop(&mut self) {
        self.before["webhooks"][0]["matchConditions"] = json!([]);
        self.cluster.apply(&self.before);
    }
}
