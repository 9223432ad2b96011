//! Pods that podman runs.

use serde_json::Value;
use tempfile::TempDir;

use super::kubelet;
use super::mounted::Images;
use super::podman::{Network, both, podman};
use crate::objects::stream;
use crate::until::until;

/// The kinds of documents that podman is given.
const PLAYED: [&str; 3] = ["ConfigMap", "Deployment", "Pod"];

/// A pod, or the one pod of a Deployment; it is gone when this is dropped.
pub struct Played {
    pod: String,
    network: Network,
    /// Its volumes that podman makes, and keeps when the pod is gone.
    empty_dirs: Vec<String>,
    /// The content of its `ConfigMap`s and Secrets.
    _volumes: TempDir,
    _images: Vec<Images>,
}

impl Played {
    /// Starts the pod, or that of the Deployment, among the documents. Its init containers have run then.
    pub fn start(mut documents: Vec<Value>, network: Network) -> Self {
        let volumes = tempfile::tempdir().expect("a folder");
        let pod = documents.iter().find_map(kubelet::pod_name).expect("a pod or a Deployment");
        kubelet::prepare(&mut documents, volumes.path());
        let empty_dirs: Vec<_> =
            documents.iter_mut().filter_map(kubelet::pod_spec).flat_map(empty_dirs).collect();
        let images = documents.iter_mut().filter_map(kubelet::pod_spec).map(Images::mount).collect();
        documents.retain(|document| PLAYED.iter().any(|kind| document["kind"] == *kind));
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), stream(&documents)).expect("its own file");
        // Before anything is started, so that nothing is left when that fails.
        let played = Self { pod, network, empty_dirs, _volumes: volumes, _images: images };
        // Of a run that was killed: podman keeps pods and volumes until they are removed.
        played.remove();
        let output =
            network.podman(&["kube", "play", "--network", network.name(), &file.path().to_string_lossy()]);
        assert!(
            output.status.success(),
            "{}\n{}",
            both(&output),
            both(&podman(&["pod", "logs", &played.pod]))
        );
        played
    }

    /// What the container `app` has printed once all of these are among it.
    pub fn wait_for(&self, wanted: &[&str]) -> String {
        until(&format!("the application prints {wanted:?}"), || {
            // Asked first, so that the log has all that it printed.
            let runs = self.runs("app");
            let log = self.log("app");
            let missing = wanted.iter().find(|text| !log.contains(**text));
            assert!(runs || missing.is_none(), "it ended without {missing:?}:\n{log}");
            missing.is_none().then_some(log)
        })
    }

    /// Runs a shell command in the container `app`: whether it went well, and what it printed.
    pub fn shell(&self, command: &str) -> (bool, String) {
        let output = self.network.podman(&["exec", &self.name("app"), "/bin/sh", "-c", command]);
        (output.status.success(), both(&output))
    }

    /// Whether a container runs.
    pub fn runs(&self, container: &str) -> bool {
        self.inspect(container, "{{.State.Running}}") == "true"
    }

    /// What a container has printed up to now.
    pub fn log(&self, container: &str) -> String {
        both(&self.network.podman(&["logs", &self.name(container)]))
    }

    /// A field of a container, as a template of Go.
    pub fn inspect(&self, container: &str, field: &str) -> String {
        let output = self.network.podman(&["inspect", "--format", field, &self.name(container)]);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Ends a container and starts it again, without the init containers, as a kubelet does. Another container of the pod
    /// has to run meanwhile: podman ends a pod with its last one.
    pub fn restart(&self, container: &str) {
        let output = self.network.podman(&["restart", "--time", "1", &self.name(container)]);
        assert!(output.status.success(), "{}", both(&output));
    }

    /// Runs the command of a container of the pod to its end, in a new container with the pod's volumes.
    pub fn run_in_volumes(&self, container: &Value) {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let items = |field: &str| container[field].as_array().into_iter().flatten();
        let mount =
            |mount: &Value| format!("--volume={}:{}", text(&mount["name"]), text(&mount["mountPath"]));
        let run = ["run", "--rm", "--network", self.network.name()].map(str::to_owned).into_iter();
        let arguments: Vec<_> = run
            .chain(items("volumeMounts").map(mount))
            .chain([text(&container["image"])])
            .chain(items("command").map(text))
            .collect();
        let output = self.network.podman(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(output.status.success(), "{}", both(&output));
    }

    /// Removes the pod, and its volumes: what a pod finds in a volume is its own, not what was left by another one of its
    /// name. Never panics.
    fn remove(&self) {
        let output = podman(&["pod", "rm", "--force", "--ignore", "--time", "0", &self.pod]);
        if !output.status.success() {
            eprintln!("{} is left: {}", self.pod, both(&output));
        }
        for volume in &self.empty_dirs {
            podman(&["volume", "rm", "--force", volume]);
        }
    }

    fn name(&self, container: &str) -> String {
        format!("{}-{container}", self.pod)
    }
}

impl Drop for Played {
    /// Never panics: it also runs while a test that failed is unwinding.
    fn drop(&mut self) {
        self.remove();
    }
}

/// The names of a pod's volumes of this kind.
fn empty_dirs(spec: &mut Value) -> Vec<String> {
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    let empty = volumes.filter(|volume| volume["emptyDir"].is_object());
    empty.filter_map(|volume| volume["name"].as_str().map(str::to_owned)).collect()
}
