//! `otel-webhook controller` as a process, with its own service account and nothing but its roles.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    process::Command,
};

use otel_webhook_testkit::{
    cluster::{ports::free_ports, program::Program},
    until::until,
};
use serde_json::{Value, json};

use crate::{
    admin,
    cluster::{Cluster, LIMIT},
    registration::{self, HOME},
};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_otel-webhook");

/// The name of the service account and of its roles.
const NAME: &str = "otel-webhook-controller";

/// The account as the API server calls it.
pub const ACCOUNT: &str = "system:serviceaccount:otel-webhook:otel-webhook-controller";

/// The kinds that the controller reads or changes, as `kubectl auth can-i` calls the last of them.
const LAST_RULE: [&str; 2] = ["create", "events.events.k8s.io"];
const LAST_RULE_OF_RESTARTS: [&str; 2] = ["patch", "daemonsets.apps"];

/// Flags of restarts at a quick pace.
const QUICKLY: &[&str] =
    &["--restarts", "--restart-settle=1s", "--restart-observe=2s", "--restart-progress=30s"];

/// A controller, started or not. It ends when this is dropped.
pub struct Controller<'c> {
    cluster: &'c Cluster,
    kubeconfig: PathBuf,
    port: u16,
    page_port: u16,
    flags: &'static [&'static str],
    process: RefCell<Option<Program>>,
}

/// The roles of the service account, as the program prints them.
pub fn roles() -> Vec<Value> {
    printed(&[])
}

/// Those of a controller that restarts workloads.
pub fn roles_with_restarts() -> Vec<Value> {
    printed(&["--restarts"])
}

/// Those of a controller of a single namespace.
pub fn roles_of_namespace(name: &str) -> Vec<Value> {
    printed(&["--namespaces", name])
}

fn printed(more: &[&str]) -> Vec<Value> {
    let args = [&["rbac", "--controller"], more].concat();
    let output = Command::new(PROGRAM).args(args).output().expect("the program can be started");
    assert!(output.status.success(), "{output:?}");
    let text = str::from_utf8(&output.stdout).expect("text");
    let mut roles: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    roles.retain(|role| role["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(NAME)));
    roles
}

impl<'c> Controller<'c> {
    /// One that is not started yet.
    pub fn new(cluster: &'c Cluster) -> Self {
        Self::with(cluster, &roles(), &["--all-namespaces"], LAST_RULE, &[])
    }

    /// One of a single namespace.
    pub fn of_namespace(cluster: &'c Cluster, (name, flags): (&str, &'static [&'static str])) -> Self {
        Self::with(cluster, &roles_of_namespace(name), &["--namespace", name], LAST_RULE, flags)
    }

    /// One that restarts workloads at a quick pace.
    pub fn with_restarts(cluster: &'c Cluster) -> Self {
        Self::with(cluster, &roles_with_restarts(), &["--all-namespaces"], LAST_RULE_OF_RESTARTS, QUICKLY)
    }

    fn with(
        cluster: &'c Cluster,
        roles: &[Value],
        place: &[&str],
        last: [&str; 2],
        flags: &'static [&'static str],
    ) -> Self {
        for role in roles {
            cluster.apply(role);
        }
        until("the roles are in effect", LIMIT, || {
            let can = [&["auth", "can-i"], &last[..], place, &["--as", ACCOUNT]].concat();
            cluster.plane.kubectl(&can).ok.then_some(())
        });
        let kubeconfig = registration::write_kubeconfig(&cluster.plane, HOME, NAME);
        let [port, page_port] = free_ports();
        Self { cluster, kubeconfig, port, page_port, flags, process: RefCell::default() }
    }

    /// The port of its metrics.
    pub fn admin_port(&self) -> u16 {
        self.port
    }

    /// Its kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Starts it, and waits until it leads.
    pub fn start(&self) {
        let mut command = Command::new(PROGRAM);
        command.args(["controller", "--admin-listen", &format!("127.0.0.1:{}", self.port)]);
        command.args(["--lease-namespace", HOME, "--log-format", "json", "--log", "info,otel_webhook=debug"]);
        command.args(["--page-listen", &format!("127.0.0.1:{}", self.page_port)]);
        command.args(self.flags);
        command.env("KUBECONFIG", &self.kubeconfig);
        let log = self.cluster.plane.dir().join("controller.log");
        self.process.replace(Some(Program::run(command, log)));
        until("the controller leads and has counted", LIMIT, || {
            let mut process = self.process.borrow_mut();
            let process = process.as_mut().expect("it was started");
            assert!(!process.has_ended(), "{}", process.report());
            self.metric("otel_webhook_workloads{state=\"injected\"}").map(drop)
        });
    }

    /// Stops it by SIGTERM: it gives its Lease up.
    pub fn stop(&self) {
        if let Some(mut process) = self.process.take() {
            process.stop();
        }
    }

    /// Ends it by SIGKILL.
    pub fn kill(&self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// The value of a metric, if it is shown.
    pub fn metric(&self, name_and_labels: &str) -> Option<u64> {
        let (_, text) = admin::get(self.admin_port(), "/metrics").filter(|(is_good, _)| *is_good)?;
        let value = text.lines().find_map(|line| line.strip_prefix(name_and_labels)?.strip_prefix(' '))?;
        Some(value.parse().expect("a whole number"))
    }

    /// The status page.
    pub fn page(&self) -> String {
        let (is_good, body) = admin::get(self.page_port, "/").expect("it answers");
        assert!(is_good, "{body}");
        body
    }

    /// The report, if there is one.
    pub fn report(&self) -> Option<Value> {
        let (_, body) = admin::get(self.page_port, "/report.json").filter(|(is_good, _)| *is_good)?;
        Some(serde_json::from_str(&body).expect("JSON"))
    }

    /// What the report says of the restart of a workload: a code and a sentence.
    pub fn restart(&self, namespace: &str, name: &str) -> Option<(String, String)> {
        let report = self.report()?;
        let workloads = report["workloads"].as_array()?;
        let row = workloads.iter().find(|row| row["namespace"] == namespace && row["name"] == name)?;
        let text = |field: &str| row["restart"][field].as_str().unwrap_or_default().to_owned();
        Some((text("code"), text("message")))
    }

    /// Waits until the report has this code for a workload, and returns the sentence.
    pub fn expect_restart(&self, namespace: &str, name: &str, code: &str) -> String {
        let mut last = None;
        let found = otel_webhook_testkit::until::poll(LIMIT, || {
            last = self.restart(namespace, name);
            last.clone().filter(|(found, _)| found == code)
        });
        let (_, sentence) = found.unwrap_or_else(|| {
            let report = self.process.borrow_mut().as_mut().map(Program::report).unwrap_or_default();
            panic!("{namespace}/{name} has {last:?}, not {code:?}\n{report}")
        });
        sentence
    }

    /// Waits until the status of an Instrumentation has these counts, of the states that are not zero.
    pub fn expect(&self, namespace: &str, name: &str, counts: &Value) -> Value {
        let mut last = Value::Null;
        let found = otel_webhook_testkit::until::poll(LIMIT, || {
            let object = self.cluster.get(namespace, &["otelinst", name]);
            let mut pods = object["status"]["pods"].clone();
            if let Some(pods) = pods.as_object_mut() {
                pods.retain(|_, count| *count != 0);
            }
            last = pods;
            (last == *counts).then_some(object)
        });
        found.unwrap_or_else(|| {
            let report = self.process.borrow_mut().as_mut().map(Program::report).unwrap_or_default();
            panic!("{namespace}/{name} has {last}, not {counts}\n{report}")
        })
    }
}

/// A Deployment whose pods opt in to Java.
pub fn deployment(namespace: &str, name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": crate::cluster::template(name)},
    })
}
