//! The nodes in the store.

use std::sync::Arc;

use serde_json::Value;

use super::Writer;
use otel_webhook_inject::cluster::{Cluster, Node, Version};

impl Writer {
    /// Adds or replaces a node. Returns false if nothing that is kept of it has changed, as in most of its updates.
    pub fn put_node(&mut self, object: &Value) -> bool {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let Some(node) = Node::of(object) else { return self.forget_node(name) };
        if self.known_node(name).is_some_and(|known| *known == node) {
            return false;
        }
        self.cluster().nodes.insert(name.into(), Arc::new(node));
        true
    }

    /// Removes a node. Returns whether it was known.
    pub fn forget_node(&mut self, name: &str) -> bool {
        self.known_node(name).is_some() && self.cluster().nodes.remove(name).is_some()
    }

    /// Removes the nodes that `keep` does not select: all others are known now. Returns whether that changes anything.
    pub fn keep_nodes(&mut self, keep: impl Fn(&str) -> bool) -> bool {
        let cluster = self.cluster();
        let before = (cluster.is_listed, cluster.nodes.len());
        cluster.nodes.retain(|name, _| keep(name));
        cluster.is_listed = true;
        before != (true, cluster.nodes.len())
    }

    /// Sets the version of the API server. Returns whether it is another one.
    pub fn set_server_version(&mut self, version: Option<&str>) -> bool {
        let known = self.working.catalogue.cluster.as_ref().and_then(|cluster| cluster.server.as_deref());
        if known == version {
            return false;
        }
        self.cluster().server = version.map(Into::into);
        true
    }

    /// Adds a node of a file, with all nodes. No kubelet may be newer than its API server, so that the newest of them
    /// is the version of the API server.
    pub(super) fn put_node_of_file(&mut self, object: &Value) {
        self.put_node(object);
        let cluster = self.cluster();
        let versions = cluster.nodes.values().map(|node| node.kubelet());
        let newest = versions.filter_map(|text| Some((Version::parse(text)?, text))).max();
        cluster.server = newest.map(|(_, text)| text.into());
        cluster.is_listed = true;
    }

    fn known_node(&self, name: &str) -> Option<&Node> {
        self.working.catalogue.cluster.as_ref()?.nodes.get(name).map(|node| &**node)
    }

    /// Snapshots share it, so that it is copied for the first change after one.
    fn cluster(&mut self) -> &mut Cluster {
        Arc::make_mut(self.working.catalogue.cluster.get_or_insert_default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use otel_webhook_api::defaults::DefaultImages;

    fn node(name: &str, kubelet: &str, pool: &str) -> Value {
        let info = json!({"kubeletVersion": kubelet, "containerRuntimeVersion": "containerd://2.2.0"});
        let metadata = json!({"name": name, "labels": {"pool": pool}, "annotations": {"at": "now"}});
        json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"nodeInfo": info}})
    }

    #[test]
    fn only_changes_of_what_is_kept_count() {
        let mut writer = Writer::new(DefaultImages::default());
        assert!(writer.put_node(&node("a", "v1.36.0", "x")));
        let mut heartbeat = node("a", "v1.36.0", "x");
        heartbeat["metadata"]["annotations"]["at"] = json!("later");
        heartbeat["status"]["conditions"] = json!([{"type": "Ready", "lastHeartbeatTime": "later"}]);
        assert!(!writer.put_node(&heartbeat));
        assert!(writer.put_node(&node("a", "v1.36.0", "y")), "a label");
        assert!(writer.put_node(&node("a", "v1.37.0", "y")), "a version");
        assert!(writer.keep_nodes(|_| true), "the first list");
        assert!(!writer.keep_nodes(|_| true));
        assert!(writer.keep_nodes(|name| name != "a"), "it left between two lists");
        assert!(!writer.forget_node("a"));
        assert!(writer.set_server_version(Some("v1.36.0")));
        assert!(!writer.set_server_version(Some("v1.36.0")));
    }

    #[test]
    fn the_nodes_of_a_file_have_an_api_server_as_new_as_the_newest() {
        let mut writer = Writer::new(DefaultImages::default());
        writer.put(&node("a", "v1.36.2", "x"));
        writer.put(&node("b", "v1.37.0", "x"));
        writer.put(&node("c", "unknown", "x"));
        writer.publish();
        let snapshot = writer.store().snapshot();
        let cluster = snapshot.catalogue.cluster.as_ref().expect("a cluster");
        assert_eq!((cluster.server.as_deref(), cluster.is_listed), (Some("v1.37.0"), true));
    }
}
