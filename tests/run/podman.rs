//! Pods in podman, with settings and images of their own.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use otel_webhook_testkit::until::until;
use serde_json::Value;

use crate::kubelet;
use crate::stream;

/// Longer than a JVM takes to start with an agent on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(180);

/// The folder that `tests/run/prepare` made.
pub fn home() -> PathBuf {
    std::env::var_os("OTEL_WEBHOOK_RUN").expect("OTEL_WEBHOOK_RUN names no folder: run `make e2e-run`").into()
}

/// The one pod of a Deployment; it is gone when this is dropped.
pub struct Played {
    pod: String,
}

impl Played {
    /// Starts the pod of the Deployment among the documents. Its init containers have run then.
    pub fn start(mut documents: Vec<Value>) -> Self {
        kubelet::prepare(&mut documents);
        let deployment = documents.iter().find(|document| document["kind"] == "Deployment");
        let name = deployment.and_then(|deployment| deployment["metadata"]["name"].as_str());
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), stream(&documents)).expect("its own file");
        // Before anything is started, so that nothing is left when that fails.
        let played = Self { pod: format!("{}-pod-0", name.expect("a Deployment")) };
        let output = podman(&["kube", "play", "--network", "none", &file.path().to_string_lossy()]);
        assert!(output.status.success(), "{}", both(&output));
        played
    }

    /// What the application has printed once all of these are among it.
    pub fn wait_for(&self, wanted: &[&str]) -> String {
        until(&format!("the application prints {wanted:?}"), LIMIT, || {
            // Asked first, so that the log has all that it printed.
            let state = podman(&["inspect", "--format", "{{.State.Running}}", &self.app()]);
            let log = both(&podman(&["logs", &self.app()]));
            let missing = wanted.iter().find(|text| !log.contains(**text));
            let runs = String::from_utf8_lossy(&state.stdout).trim() == "true";
            assert!(runs || missing.is_none(), "it ended without {missing:?}:\n{log}");
            missing.is_none().then_some(log)
        })
    }

    /// Runs a shell command in the application's container: whether it went well, and what it printed.
    pub fn shell(&self, command: &str) -> (bool, String) {
        let output = podman(&["exec", &self.app(), "/bin/sh", "-c", command]);
        (output.status.success(), both(&output))
    }

    fn app(&self) -> String {
        format!("{}-app", self.pod)
    }
}

impl Drop for Played {
    /// Never panics: it also runs while a test that failed is unwinding.
    fn drop(&mut self) {
        let output = podman(&["pod", "rm", "--force", "--ignore", "--time", "0", &self.pod]);
        if !output.status.success() {
            eprintln!("{} is left: {}", self.pod, both(&output));
        }
    }
}

/// Runs podman with the settings of this suite.
pub fn podman(args: &[&str]) -> Output {
    let home = home();
    Command::new("podman")
        .args(args)
        .env("CONTAINERS_CONF", home.join("containers.conf"))
        .env("CONTAINERS_STORAGE_CONF", home.join("storage.conf"))
        .output()
        .expect("podman can be started")
}

/// What a command printed, on both of its outputs.
pub fn both(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}
