//! What a tool such as Argo CD does to a template that it owns: it takes the annotation of a restart back.

use otel_webhook_testkit::until::until;
use serde_json::json;

use super::support::{SHOP, change, consenting, create, events, revision, revision_of, shop};
use crate::{
    audit,
    cases::fleet::drop_statuses,
    cluster::{Cluster, LIMIT},
    controller::{ACCOUNT, Controller, deployment},
};

/// A tool takes the annotation back, at once or when the rollout is complete: the restart is not made again.
pub fn on_our_crd(_: &Cluster) {
    let cluster = Cluster::with_node(&[]);
    shop(&cluster, &[]);
    take_back_twice(&cluster);
}

/// The same without a status in which the controller could note something.
pub fn on_the_operators_crd(_: &Cluster) {
    let cluster = Cluster::with_node(&[]);
    shop(&cluster, &[]);
    drop_statuses(&cluster, SHOP);
    take_back_twice(&cluster);
    assert!(cluster.get(SHOP, &["otelinst", "default"])["status"]["pods"].is_null());
}

fn take_back_twice(cluster: &Cluster) {
    for name in ["at-once", "later"] {
        create(cluster, &consenting(deployment(SHOP, name, 2), "rollout"));
    }
    let controller = Controller::with_restarts(cluster);
    controller.start();
    change(cluster, "http://second:4317");
    let annotation = "/spec/template/metadata/annotations/otel-webhook~1config";
    let patch = json!([{"op": "remove", "path": annotation}]).to_string();
    let take_back = |name: &str| {
        let args = ["patch", "deployment", name, "--namespace", SHOP, "--type=json", "--patch", &patch];
        until(&format!("the annotation of {name} is taken back"), LIMIT, || {
            cluster.plane.kubectl(&args).ok.then_some(())
        });
    };
    take_back("at-once");
    until("the second one is restarted, and has new pods", LIMIT, || {
        let found = cluster.get(SHOP, &["deployment", "later"]);
        let is_complete = found["metadata"]["generation"] == found["status"]["observedGeneration"]
            && found["status"]["updatedReplicas"] == 2
            && found["status"]["replicas"] == 2;
        // All of one read: before the restart, the first rollout is complete, too.
        (is_complete && revision_of(&found) == "2").then_some(())
    });
    take_back("later");
    controller.expect_restart(SHOP, "later", "");
    // Its pods may be those from before, which are then not restarted again.
    let (code, sentence) = until("the first one is not observed any more", LIMIT, || {
        let told = controller.restart(SHOP, "at-once")?;
        ["", "AlreadyRestarted"].contains(&&*told.0).then_some(told)
    });
    assert!(
        code.is_empty() || sentence.contains("it was restarted for this configuration already"),
        "{sentence}"
    );
    controller.stop();
    for name in ["at-once", "later"] {
        assert_eq!(audit::patches(cluster, ACCOUNT, "deployments", SHOP, name).len(), 1, "{name}");
        // To the annotation, and back to the first template.
        assert_eq!(revision(cluster, SHOP, name), "3", "{name}");
        assert_eq!(events(cluster, SHOP, name, "Restarted").len(), 1, "{name}");
    }
}
