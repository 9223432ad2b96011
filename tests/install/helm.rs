//! helm, as an administrator runs it.

use std::fs;
use std::process::Command;

use otel_webhook_testkit::cluster::control_plane::Ran;
use serde_json::Value;

use crate::cluster::Cluster;

/// The chart of this tree. `OTEL_WEBHOOK_CHART` names another, such as one in a registry of loopback.
pub const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/otel-webhook");

/// A release of the chart. It is uninstalled, and the CRD deleted, when it is
/// dropped: a case leaves the cluster as it found it.
pub struct Release<'c> {
    cluster: &'c Cluster,
    program: &'static str,
    pub namespace: String,
    pub name: &'static str,
}

impl<'c> Release<'c> {
    /// Nothing is installed yet. `program` is `helm3` or `helm4`.
    pub fn new(cluster: &'c Cluster, program: &'static str, namespace: &str) -> Self {
        Self::named(cluster, program, namespace, "otel-webhook")
    }

    /// The same by another name, for a second release in one namespace.
    pub fn named(cluster: &'c Cluster, program: &'static str, namespace: &str, name: &'static str) -> Self {
        Self { cluster, program, namespace: namespace.to_owned(), name }
    }

    /// Installs the chart and waits until its Deployment is rolled out.
    pub fn install(&self, values: &Value) -> Ran {
        self.install_chart(&chart(), values)
    }

    /// Installs a chart and waits until its Deployment is rolled out.
    pub fn install_chart(&self, chart: &str, values: &Value) -> Ran {
        self.must(&["install", "--create-namespace", "--wait", "--timeout", "60s"], chart, values)
    }

    /// Upgrades to the same chart with these values alone.
    pub fn upgrade(&self, values: &Value) -> Ran {
        self.upgrade_to(&chart(), values)
    }

    /// Upgrades to a chart, with these values alone.
    pub fn upgrade_to(&self, chart: &str, values: &Value) -> Ran {
        self.must(&["upgrade", "--reset-values", "--wait", "--timeout", "60s"], chart, values)
    }

    /// Goes back to a revision.
    pub fn rollback(&self, revision: &str) {
        let namespace = ["--namespace", &self.namespace];
        let args = ["rollback", self.name, revision, "--wait", "--timeout", "60s"];
        let ran = self.helm(&[&args[..], &namespace[..]].concat());
        assert!(ran.ok, "{} rollback failed: {}", self.program, ran.stderr);
    }

    /// Upgrades, and lets helm take what belongs to another release.
    pub fn take_over(&self, values: &Value) {
        let mut args = vec!["upgrade", "--reset-values", "--take-ownership", "--wait", "--timeout", "60s"];
        if self.program == "helm4" {
            // It applies on the server's side, where the fields have an owner as well.
            args.push("--force-conflicts");
        }
        self.must(&args, &chart(), values);
    }

    fn must(&self, command: &[&str], chart: &str, values: &Value) -> Ran {
        let ran = self.try_with(command, chart, Some(values));
        assert!(ran.ok, "{} {} failed: {}", self.program, command[0], ran.stderr);
        ran
    }

    /// The objects that helm runs at moments of the release's life.
    pub fn hooks(&self) -> Vec<Value> {
        let ran = self.helm(&["get", "hooks", self.name, "--namespace", &self.namespace]);
        assert!(ran.ok, "{} get hooks failed: {}", self.program, ran.stderr);
        serde_saphyr::from_multiple(&ran.stdout).expect("YAML")
    }

    /// Removes the release.
    pub fn uninstall(&self) {
        let ran = self.helm(&["uninstall", self.name, "--namespace", &self.namespace, "--wait"]);
        assert!(ran.ok, "{} uninstall failed: {}", self.program, ran.stderr);
    }

    /// Runs a command of helm that takes a chart.
    pub fn try_to(&self, command: &[&str], values: Option<&Value>) -> Ran {
        self.try_with(command, &chart(), values)
    }

    fn try_with(&self, command: &[&str], chart: &str, values: Option<&Value>) -> Ran {
        let file = self.cluster.plane.dir().join("values.json");
        let mut args = command.to_vec();
        args.extend([self.name, chart, "--namespace", &self.namespace]);
        if chart.starts_with("oci://") {
            // A registry of loopback has no certificate.
            args.push("--plain-http");
        }
        if let Some(values) = values {
            fs::write(&file, values.to_string()).expect("the scratch folder is writable");
            args.extend(["--values", file.to_str().expect("a path in UTF-8")]);
        }
        self.helm(&args)
    }

    fn helm(&self, args: &[&str]) -> Ran {
        let plane = &self.cluster.plane;
        let home = plane.dir().join("helm");
        let output = Command::new(plane.tools().join(self.program))
            .args(args)
            .env("KUBECONFIG", plane.kubeconfig())
            // Neither the settings nor the caches of the user who runs the tests.
            .env("HOME", &home)
            .env("HELM_CACHE_HOME", home.join("cache"))
            .env("HELM_CONFIG_HOME", home.join("config"))
            .env("HELM_DATA_HOME", home.join("data"))
            .output()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", self.program));
        Ran::from(&output)
    }
}

/// The chart under test.
fn chart() -> String {
    std::env::var("OTEL_WEBHOOK_CHART").unwrap_or_else(|_| CHART.to_owned())
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.helm(&["uninstall", self.name, "--namespace", &self.namespace, "--ignore-not-found", "--wait"]);
        let crd = "instrumentations.opentelemetry.io";
        self.cluster.plane.kubectl(&["delete", "crd", crd, "--ignore-not-found"]);
    }
}
