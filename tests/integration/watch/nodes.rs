//! Nodes, and the version of the API server.

use otel_webhook_api::Delivery;
use otel_webhook_inject::{self as inject, Input, Note, Settings, pod::Pod, size::SizeLimits};
use otel_webhook_testkit::objects::{NAMESPACE, asking, instrumentation};
use serde_json::{Value, json};

use super::{Following, Listing, Server, Sources, until};
use crate::logs::Log;

/// A node as the API server has it, with more than is used of it.
fn node(name: &str, kubelet: &str) -> Value {
    let info = json!({
        "kubeletVersion": kubelet, "containerRuntimeVersion": "containerd://2.2.1", "kernelVersion": "6.12.0",
    });
    let images = json!([{"names": ["a:1"], "sizeBytes": 1}]);
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "resourceVersion": "2", "labels": {"pool": name}},
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {"nodeInfo": info, "images": images},
    })
}

fn server(nodes: Vec<Value>) -> Server {
    let server = Server::empty();
    let mut object = instrumentation("inst", json!({}));
    object["metadata"]["resourceVersion"] = json!("2");
    server.list("instrumentations", Listing::Items(vec![object]));
    server.list("nodes", Listing::Items(nodes));
    let version = json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "", "buildDate": "",
        "goVersion": "", "compiler": "", "platform": "",
    });
    server.list("version", Listing::Object(version));
    server
}

/// What is said of the delivery into a pod with this node selector.
fn said(following: &Following, selector: &Value) -> String {
    let snapshot = following.store.snapshot();
    let mut pod = asking(&["nodejs"], json!({}));
    pod["spec"]["nodeSelector"] = selector.clone();
    let text = pod.to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let settings = Settings { delivery: Delivery::Auto, ..Settings::default() };
    let input =
        Input { pod: &pod, namespace: NAMESPACE, catalogue: &snapshot.catalogue, settings: &settings };
    let outcome = inject::build(inject::decide(input), &snapshot.owners);
    let finding = outcome.findings.first().expect("a finding");
    let of_delivery = |note: &&Note| ["ImageVolume", "InitContainerKept"].contains(&note.code());
    finding.notes.iter().find(of_delivery).map(ToString::to_string).unwrap_or_default()
}

const MOUNTED: &str = "the image of the agent is mounted as a volume, without init containers";
const OLD: &str = "on node \"old\" the kubelet has version v1.35.1; image volumes need 1.36 or newer";

#[tokio::test]
async fn a_node_that_joins_changes_or_leaves_counts_for_the_next_review() {
    let server = server(vec![node("new", "v1.36.1")]);
    let following = server.follow_with(SizeLimits::default(), Sources { nodes: true, ..Sources::default() });
    following.ready().await;
    assert_eq!(said(&following, &json!({})), MOUNTED);

    let old = node("old", "v1.35.1");
    server.tell("nodes", "ADDED", &old).await;
    let kept = format!("init containers copy the agent, since {OLD}");
    until(|| (said(&following, &json!({})) == kept).then_some(())).await;
    assert_eq!(said(&following, &json!({"pool": "new"})), MOUNTED, "the labels are kept");

    server.tell("nodes", "MODIFIED", &node("old", "v1.36.0")).await;
    until(|| (said(&following, &json!({})) == MOUNTED).then_some(())).await;
    server.tell("nodes", "MODIFIED", &old).await;
    until(|| (said(&following, &json!({})) == kept).then_some(())).await;
    server.tell("nodes", "DELETED", &old).await;
    until(|| (said(&following, &json!({})) == MOUNTED).then_some(())).await;
}

#[tokio::test]
async fn nothing_is_ready_before_all_nodes_are_known() {
    for held in ["nodes", "version"] {
        let server = server(vec![node("new", "v1.36.1")]);
        server.list(held, Listing::Held);
        let following =
            server.follow_with(SizeLimits::default(), Sources { nodes: true, ..Sources::default() });
        until(|| (server.listed(held) > 0).then_some(())).await;
        until(|| following.store.snapshot().catalogue.namespace(NAMESPACE).is_some().then_some(())).await;
        assert!(!following.is_ready(), "{held}");
        assert_ne!(said(&following, &json!({})), MOUNTED, "{held}");
    }
}

/// With the role of an installation that does not watch nodes, say.
#[tokio::test]
async fn nodes_that_may_not_be_listed_mean_init_containers_and_are_not_waited_for() {
    let log = Log::default();
    let _logging = log.keep();
    let server = server(Vec::new());
    server.list("nodes", Listing::Forbidden);
    let following = server.follow_with(SizeLimits::default(), Sources { nodes: true, ..Sources::default() });
    following.ready().await;
    let unknown = "init containers copy the agent, since the nodes are not known; see --watch-nodes of serve, and --nodes \
                   of explain";
    assert_eq!(said(&following, &json!({})), unknown);
    until(|| log.text().contains("nodes are used only as last read").then_some(())).await;
    server.list("nodes", Listing::Items(vec![node("new", "v1.36.1")]));
    until(|| (said(&following, &json!({})) == MOUNTED).then_some(())).await;
}

#[tokio::test]
async fn nodes_are_watched_on_demand_only() {
    let server = server(vec![node("new", "v1.36.1")]);
    let following = server.follow();
    following.ready().await;
    assert_eq!((server.listed("nodes"), server.listed("version")), (0, 0));
    assert!(said(&following, &json!({})).contains("the nodes are not known"));
}
