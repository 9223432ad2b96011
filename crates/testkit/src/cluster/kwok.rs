//! A node of kwok, which runs nothing.

use std::path::Path;

use serde_json::json;

use super::control_plane::ControlPlane;

/// The stages of kwok that bring nodes and pods to life.
const STAGES: [&str; 5] = [
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
];

impl ControlPlane {
    /// Starts the scheduler, and kwok with one node, which runs nothing and says that all is well, but for what these
    /// stages say.
    pub fn start_node(&mut self, stages: &[&Path]) {
        self.start_scheduler();
        self.start_kwok(stages);
        // As a kubelet labels its own node.
        let labels = json!({"kubernetes.io/os": "linux", "kubernetes.io/hostname": "node"});
        let node =
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node", "labels": labels}});
        self.apply(&node.to_string());
        self.wait("the wait for the node", &["wait", "node/node", "--for=condition=Ready", "--timeout=1s"]);
    }

    /// Starts kwok alone.
    pub fn start_kwok(&mut self, stages: &[&Path]) {
        let usual = self.tools().join("kwok-stages");
        let all = STAGES
            .iter()
            .map(|stage| usual.join(stage))
            .chain(stages.iter().map(|stage| stage.to_path_buf()));
        let configs: Vec<_> = all.map(|stage| format!("--config={}", stage.display())).collect();
        let options = ["--kubeconfig=kubeconfig", "--manage-all-nodes", "--node-lease-duration-seconds=40"];
        self.run("kwok", &format!("{}\n{}", options.join("\n"), configs.join("\n")));
    }
}
