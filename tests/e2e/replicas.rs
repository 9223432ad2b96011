//! Replicas with managed certificates: processes of one service account that has nothing but the roles that
//! `otel-webhook rbac` prints, each behind its own webhook configuration.

use std::cell::RefCell;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use otel_webhook_testkit::{
    admin,
    cluster::{ports::free_ports, program::Program},
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::{Cluster, java};
use crate::program::{PROGRAM, roles as printed_roles};
use crate::registration;

/// Where the replicas live.
pub const HOME: &str = "managed-home";
pub const SECRET: &str = "certificates";
pub const ACCOUNT: &str = "system:serviceaccount:managed-home:managed";

pub const REPLICAS: usize = 3;

/// Three replicas, started or not. They end, and their configurations go, when this is dropped.
pub struct Replicas<'c> {
    cluster: &'c Cluster,
    /// What tells their names from those of other replicas that run at the same time.
    set: String,
    kubeconfig: PathBuf,
    namespace: String,
    flags: Vec<String>,
    ports: [[u16; 2]; REPLICAS],
    processes: RefCell<[Option<Program>; REPLICAS]>,
}

/// The roles of the service account, as the program prints them.
pub fn roles() -> Vec<Value> {
    roles_of("")
}

fn roles_of(set: &str) -> Vec<Value> {
    let (name, home) = (format!("managed{set}"), format!("{HOME}{set}"));
    let flags = ["--name", &name, "--namespace", &home, "--tls-managed", SECRET];
    printed_roles(&[&flags[..], &["--webhook-configuration", &configurations(set)]].concat())
}

/// The configurations by which API servers reach a replica.
pub fn configuration(replica: usize) -> String {
    configuration_of("", replica)
}

fn configuration_of(set: &str, replica: usize) -> String {
    format!("managed{set}-{replica}")
}

fn configurations(set: &str) -> String {
    (0..REPLICAS).map(|replica| configuration_of(set, replica)).collect::<Vec<_>>().join(",")
}

impl<'c> Replicas<'c> {
    /// Nothing is started, no configuration exists, and there is no Secret. Pods of the case are in
    /// `namespace`, which has an Instrumentation.
    pub fn new(cluster: &'c Cluster, namespace: &str, flags: &[&str]) -> Self {
        Self::new_set(cluster, "", namespace, flags)
    }

    fn new_set(cluster: &'c Cluster, set: &str, namespace: &str, flags: &[&str]) -> Self {
        let (account, home) = (format!("managed{set}"), format!("{HOME}{set}"));
        cluster.namespace(&home, &[]);
        for role in roles_of(set) {
            cluster.apply(&role);
        }
        cluster.plane.kubectl(&["delete", "secret", SECRET, "--namespace", &home, "--ignore-not-found"]);
        // Whether the cluster's own webhook knows it makes no difference.
        cluster.namespace(namespace, &[]);
        cluster.instrumentation(namespace, "default", &json!({}));
        let ports: [u16; 2 * REPLICAS] = free_ports();
        Self {
            cluster,
            set: set.to_owned(),
            kubeconfig: cluster.plane.kubeconfig_of(&home, &account),
            namespace: namespace.to_owned(),
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            ports: [[ports[0], ports[1]], [ports[2], ports[3]], [ports[4], ports[5]]],
            processes: RefCell::default(),
        }
    }

    /// Three replicas and their configurations, as soon as all are ready.
    pub fn started(cluster: &'c Cluster, namespace: &str, flags: &[&str]) -> Self {
        Self::new(cluster, namespace, flags).start_all()
    }

    /// The same while others run: `set` is a number that none of them has. With its
    /// own Secret and configurations, a set has nothing to do with the others.
    pub fn started_set(cluster: &'c Cluster, set: usize, namespace: &str, flags: &[&str]) -> Self {
        Self::new_set(cluster, &format!("-set-{set}"), namespace, flags).start_all()
    }

    fn start_all(self) -> Self {
        (0..REPLICAS).for_each(|replica| self.register(replica));
        (0..REPLICAS).for_each(|replica| self.start(replica));
        (0..REPLICAS).for_each(|replica| self.wait_until_ready(replica));
        self
    }

    /// Starts one; it is not waited for.
    pub fn start(&self, replica: usize) {
        let port = self.ports[replica][0];
        let (names, home) = (configurations(&self.set), format!("{HOME}{}", self.set));
        let mut command = Command::new(PROGRAM);
        command
            .arg("serve")
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(["--admin-listen", &self.admin(replica).to_string()])
            .args(["--tls-managed", SECRET, "--webhook-configuration", &names, "--namespace", &home])
            .args(["--tls-name", "127.0.0.1", "--log-format", "json", "--shutdown-delay", "0"])
            .args(&self.flags)
            .env("KUBECONFIG", &self.kubeconfig);
        self.processes.borrow_mut()[replica] = Some(Program::run(command, self.log_file(replica)));
    }

    /// Ends one as a power cut does.
    pub fn kill(&self, replica: usize) {
        self.processes.borrow_mut()[replica].take().expect("it runs").kill();
    }

    pub fn wait_until_ready(&self, replica: usize) {
        until(&format!("replica {replica} is ready"), || {
            let has_ended = self.processes.borrow_mut()[replica].as_mut().is_none_or(Program::has_ended);
            assert!(!has_ended, "replica {replica} has ended: {:?}", self.log(replica));
            self.is_ready(replica).then_some(())
        });
    }

    pub fn is_ready(&self, replica: usize) -> bool {
        admin::get(self.admin(replica), "/readyz").is_some_and(|(is_ready, _)| is_ready)
    }

    fn admin(&self, replica: usize) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.ports[replica][1]))
    }

    /// The text of the readiness probe.
    pub fn readiness(&self, replica: usize) -> String {
        admin::get(self.admin(replica), "/readyz").map(|(_, text)| text).unwrap_or_default()
    }

    /// The value of a metric, with its labels as they are printed.
    pub fn metric(&self, replica: usize, name_and_labels: &str) -> Option<f64> {
        admin::metric(self.admin(replica), name_and_labels)
    }

    /// The log lines of a replica that contain this.
    pub fn said(&self, replica: usize, part: &str) -> usize {
        self.log(replica).iter().filter(|line| line.contains(part)).count()
    }

    /// How often all replicas together have said this.
    pub fn all_said(&self, part: &str) -> usize {
        (0..REPLICAS).map(|replica| self.said(replica, part)).sum()
    }

    fn log(&self, replica: usize) -> Vec<String> {
        let log = fs::read_to_string(self.log_file(replica)).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn log_file(&self, replica: usize) -> PathBuf {
        self.cluster.plane.dir().join(format!("{}{}-{replica}.log", self.namespace, self.set))
    }

    /// A pod that is sent to one replica and to nobody else.
    pub fn pod(&self, name: &str, replica: usize) -> Value {
        let mut pod = java(name);
        pod["metadata"]["namespace"] = self.namespace.as_str().into();
        let labels = json!({"replica": self.configuration(replica), (registration::ELSEWHERE): ""});
        pod["metadata"]["labels"] = labels;
        pod
    }

    /// Makes the two configurations of a replica, without `caBundle`.
    pub fn register(&self, replica: usize) {
        let [port, _] = self.ports[replica];
        let url = |path: &str| json!({"url": format!("https://127.0.0.1:{port}{path}")});
        let rule = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["pods"], "scope": "Namespaced"}]);
        let webhook = |name: &str, path: &str| {
            json!({
                "name": format!("{name}{}-{replica}.otel-webhook.example", self.set), "admissionReviewVersions": ["v1"],
                "clientConfig": url(path), "rules": rule, "failurePolicy": "Ignore", "timeoutSeconds": 5,
                "sideEffects": "None",
                "namespaceSelector": {"matchLabels": {"case": self.namespace}},
                "objectSelector": {"matchLabels": {"replica": self.configuration(replica)}},
            })
        };
        for (kind, path) in [
            ("MutatingWebhookConfiguration", "/mutate-v1-pod"),
            // Whatever is sent there is allowed; it is here for its caBundle.
            ("ValidatingWebhookConfiguration", "/validate-workloads"),
        ] {
            self.cluster.apply(&json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": self.configuration(replica)}, "webhooks": [webhook("managed", path)],
            }));
        }
    }

    fn configuration(&self, replica: usize) -> String {
        configuration_of(&self.set, replica)
    }

    /// The Secret, while there is one.
    pub fn secret(&self) -> Option<Value> {
        let home = format!("{HOME}{}", self.set);
        let args = ["get", "secret", SECRET, "--namespace", &home, "--output", "json"];
        let ran = self.cluster.plane.kubectl(&args);
        ran.ok.then(|| serde_json::from_str(&ran.stdout).expect("kubectl prints JSON"))
    }

    /// What a configuration trusts: base64, or nothing.
    pub fn bundle(&self, kind: &str, replica: usize) -> String {
        let path = "jsonpath={.webhooks[0].clientConfig.caBundle}";
        self.cluster.run(&["get", kind, &self.configuration(replica), "--output", path]).stdout
    }
}

impl Drop for Replicas<'_> {
    fn drop(&mut self) {
        self.processes.take();
        let names = [0, 1, 2].map(|replica| self.configuration(replica));
        for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
            let args = ["delete", kind, "--ignore-not-found", &names[0], &names[1], &names[2]];
            self.cluster.plane.kubectl(&args);
        }
    }
}
