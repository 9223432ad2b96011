//! `otel-webhook controller` as a process, with its own service account and nothing but its roles.

use std::{
    cell::RefCell,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use otel_webhook_testkit::{
    admin,
    cluster::{ports::free_ports, program::Program},
    load::process,
    until::{poll, until},
};
use serde_json::Value;

use crate::{
    cluster::Cluster,
    program::{PROGRAM, roles as printed_roles},
    registration::HOME,
};

pub use otel_webhook_testkit::cluster::manifests::deployment;

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
    admin: SocketAddr,
    page: SocketAddr,
    flags: Vec<&'static str>,
    more: Vec<String>,
    process: RefCell<Option<Program>>,
}

/// The roles of the service account, as the program prints them.
pub fn roles() -> Vec<Value> {
    printed(&[])
}

/// Those of a controller that reports no mistakes.
pub fn roles_without_mistakes() -> Vec<Value> {
    printed(&["--mistakes=false"])
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
    let mut roles = printed_roles(&[&["--controller"], more].concat());
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
        Self::with_restarts_and(cluster, &[])
    }

    /// The same with more flags.
    pub fn with_restarts_and(cluster: &'c Cluster, more: &[&'static str]) -> Self {
        let flags = [QUICKLY, more].concat();
        Self::with(cluster, &roles_with_restarts(), &["--all-namespaces"], LAST_RULE_OF_RESTARTS, &flags)
    }

    /// One with more flags.
    pub fn and(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.more.extend(more);
        self
    }

    /// The same with another kubeconfig, such as that of a proxy.
    pub fn connecting_by(mut self, kubeconfig: PathBuf) -> Self {
        self.kubeconfig = kubeconfig;
        self
    }

    fn with(
        cluster: &'c Cluster,
        roles: &[Value],
        place: &[&str],
        last: [&str; 2],
        flags: &[&'static str],
    ) -> Self {
        for role in roles {
            cluster.apply(role);
        }
        until("the roles are in effect", || {
            let can = [&["auth", "can-i"], &last[..], place, &["--as", ACCOUNT]].concat();
            cluster.plane.kubectl(&can).ok.then_some(())
        });
        let kubeconfig = cluster.plane.kubeconfig_of(HOME, NAME);
        let [admin, page] = free_ports().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        Self {
            cluster,
            kubeconfig,
            admin,
            page,
            flags: flags.to_vec(),
            more: Vec::new(),
            process: RefCell::default(),
        }
    }

    /// Its kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Starts it, and waits until it leads.
    pub fn start(&self) {
        let mut command = Command::new(PROGRAM);
        command.args(["controller", "--admin-listen", &self.admin.to_string()]);
        command.args(["--lease-namespace", HOME, "--log-format", "json", "--log", "info,otel_webhook=debug"]);
        command.args(["--page-listen", &self.page.to_string()]);
        command.args(&self.flags).args(&self.more);
        // The image has no CAs of a system either.
        command.env("KUBECONFIG", &self.kubeconfig).env("SSL_CERT_FILE", "/dev/null");
        let log = self.cluster.plane.dir().join("controller.log");
        self.process.replace(Some(Program::run(command, log)));
        until("the controller leads and has counted", || {
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

    /// The most memory that it has used, in MB.
    pub fn peak(&self) -> f64 {
        process::memory(self.process.borrow().as_ref().expect("it runs").id()).peak
    }

    /// The value of a metric, if it is shown.
    pub fn metric(&self, name_and_labels: &str) -> Option<u64> {
        admin::metric(self.admin, name_and_labels)
    }

    /// The numbers of pods of Java in these states, by the metrics of one moment.
    pub fn java_pods<const N: usize>(&self, states: [&str; N]) -> [Option<u64>; N] {
        let metrics = admin::body(self.admin, "/metrics").unwrap_or_default();
        let name = |state| format!("otel_webhook_pods{{state=\"{state}\",language=\"java\"}}");
        states.map(|state| admin::value(&metrics, &name(state)))
    }

    /// The status page.
    pub fn page(&self) -> String {
        admin::body(self.page, "/").expect("it answers")
    }

    /// The report, if there is one.
    pub fn report(&self) -> Option<Value> {
        Some(serde_json::from_str(&admin::body(self.page, "/report.json")?).expect("JSON"))
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
        let found = poll(|| {
            last = self.restart(namespace, name);
            last.clone().filter(|(found, _)| found == code)
        });
        let (_, sentence) =
            found.unwrap_or_else(|| self.fail(&format!("{namespace}/{name} has {last:?}, not {code:?}")));
        sentence
    }

    /// Waits until the status of an Instrumentation has these counts, of the states that are not zero.
    pub fn expect(&self, namespace: &str, name: &str, counts: &Value) -> Value {
        let mut last = Value::Null;
        let found = poll(|| {
            let object = self.cluster.get(namespace, &["otelinst", name]);
            let mut pods = object["status"]["pods"].clone();
            if let Some(pods) = pods.as_object_mut() {
                pods.retain(|_, count| *count != 0);
            }
            last = pods;
            (last == *counts).then_some(object)
        });
        found.unwrap_or_else(|| self.fail(&format!("{namespace}/{name} has {last}, not {counts}")))
    }

    fn fail(&self, what: &str) -> ! {
        let report = self.process.borrow_mut().as_mut().map(Program::report).unwrap_or_default();
        panic!("{what}\n{report}")
    }
}
