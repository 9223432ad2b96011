//! Whether the images of agents could be mounted in place of the copies that init containers make.

use std::sync::Arc;

use k8s_openapi::api::core::v1;
use kube::core::ApiResource;
use otel_webhook_api::Delivery;
use otel_webhook_inject::{
    cluster::{self, Cluster, Need, Node, Version},
    pod::Spec,
};
use serde_json::Value;

use super::result::{CheckResult, Code};
use crate::cli::cluster::{
    facts::Facts,
    object::text,
    reader::{ClusterReader, Part},
};

/// Returns the recommendation to mount images, if the webhook copies agents and every node can mount them. `None` if
/// that is not known, such as where the user may not list nodes.
pub async fn result(reader: &ClusterReader, facts: &Facts) -> Option<CheckResult> {
    let settings = facts.running.as_ref()?.flags.as_ref().ok()?.injection.settings();
    if settings.delivery != Delivery::InitContainer {
        return None;
    }
    let server = reader.version.as_deref().map(Into::into);
    let mut nodes = Cluster { server, is_listed: true, ..Cluster::default() };
    let take = |node: Value| {
        let name = text(&node["metadata"]["name"]).into();
        nodes.nodes.extend(Node::of(&node).map(|node| (name, Arc::new(node))));
    };
    reader.each(&ApiResource::erase::<v1::Node>(&()), None, Part::Whole, take).await.ok()?;
    recommendation(&nodes, settings.image_volumes_from)
}

fn recommendation(nodes: &Cluster, least: Version) -> Option<CheckResult> {
    // Whatever a language needs, for a pod that may run on any node.
    let need = Need { by_subpath: true, least };
    let obstacle = cluster::obstacle(Some(nodes), &Spec::default(), need);
    obstacle.is_none().then(|| {
        let message = format!(
            "agents are copied by init containers, and all {} nodes can mount their images, with which pods start \
             sooner (docs/sizes.md#start-of-a-pod)",
            nodes.nodes.len()
        );
        CheckResult::new(Code::ImageVolumesPossible, message)
            .advise("set injection.delivery=auto in the chart's values; see docs/image-volumes.md for what changes")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_are_recommended_only_where_every_node_can_mount_them() {
        let node = |runtime: &str| {
            let info = json!({"kubeletVersion": "v1.36.3", "containerRuntimeVersion": runtime});
            Arc::new(Node::of(&json!({"status": {"nodeInfo": info}})).expect("a node"))
        };
        let of = |server: Option<&str>, runtimes: &[&str]| {
            let nodes =
                runtimes.iter().enumerate().map(|(index, runtime)| (index.to_string().into(), node(runtime)));
            let server = server.map(Into::into);
            recommendation(&Cluster { server, nodes: nodes.collect(), is_listed: true }, Version::new(1, 36))
        };
        let new = "containerd://2.4.2";
        let found = of(Some("v1.36.3"), &[new, new]).expect("a recommendation");
        assert_eq!(found.code, Code::ImageVolumesPossible);
        assert!(found.line().contains("all 2 nodes can mount their images"), "{}", found.line());
        for (server, runtimes) in [
            (Some("v1.36.3"), &[new, "containerd://1.7.0"][..]),
            (Some("v1.35.0"), &[new]),
            (None, &[new]),
            (Some("v1.36.3"), &[]),
        ] {
            assert_eq!(of(server, runtimes), None, "{server:?} {runtimes:?}");
        }
    }
}
