//! The node with the product on it, as the README installs it, and what the cases do there.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use otel_webhook_testkit::cluster::control_plane::Ran;
use otel_webhook_testkit::cluster::node::Node;
use otel_webhook_testkit::containers::podman;
use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use crate::workload;

/// The namespace of the product.
pub const HOME: &str = "otel-webhook";

/// The product's image, as the chart names it, and its archive in the folder for temporary files.
pub const IMAGE: &str = concat!("ghcr.io/otel-webhook/otel-webhook:", env!("CARGO_PKG_VERSION"));
pub const ARCHIVE: &str = "otel-webhook.tar";

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const README: &str = include_str!("../../README.md");

const LOG_TAIL_LINES: usize = 40;

/// A node that has the product.
pub struct Cluster {
    /// Written to by cases that stop a program of the control plane.
    node: RwLock<Node>,
    kubeconfig: PathBuf,
    /// The folder in which commands are run, with the programs that they name in `bin`.
    desk: PathBuf,
}

impl Cluster {
    /// Starts a node and installs the product by the README's command.
    pub fn start() -> Self {
        let archives = fs::read_dir(podman::home()).expect("the folder of images");
        let archives = archives.map(|entry| entry.expect("a readable folder").path());
        let mut archives: Vec<_> =
            archives.filter(|path| path.extension().is_some_and(|end| end == "tar")).collect();
        archives.push(env::temp_dir().join(ARCHIVE));
        let node = Node::start(&archives);
        let desk = desk(&node);
        let kubeconfig = node.plane.kubeconfig().to_owned();
        let cluster = Self { node: RwLock::new(node), kubeconfig, desk };
        let install = README.lines().find_map(|line| line.strip_prefix("$ helm install")).expect("a command");
        cluster.shell(&format!("helm install{install}"));
        for deployment in ["otel-webhook", "otel-webhook-controller"] {
            cluster.rolled_out(HOME, deployment);
        }
        // kube-proxy learns a little later that pods are ready.
        let object = instrumentation("default", "probe", &json!({})).to_string();
        until("the Service reaches the webhook", || {
            let args = ["create", "--dry-run=server", "--filename=-"];
            cluster.node().plane.kubectl_in(&args, &object).ok.then_some(())
        });
        cluster
    }

    /// The node.
    pub fn node(&self) -> RwLockReadGuard<'_, Node> {
        self.node.read().expect("no case panics while it stops a program")
    }

    /// The node alone, to stop its programs.
    pub fn node_mut(&self) -> RwLockWriteGuard<'_, Node> {
        self.node.write().expect("no case panics while it stops a program")
    }

    /// The ends of the logs of kubelet and of the product, and the pods.
    pub fn logs(&self) -> String {
        let tail = |name: &str, log: &str| {
            let skipped = log.lines().count().saturating_sub(LOG_TAIL_LINES);
            let lines: Vec<_> = log.lines().skip(skipped).collect();
            format!("The end of {name}:\n{}\n", lines.join("\n"))
        };
        let kubelet = self.node().plane.dir().join("kubelet.log");
        let kubelet = tail("kubelet.log", &fs::read_to_string(kubelet).unwrap_or_default());
        let logs =
            self.kubectl(&["logs", "--namespace", HOME, "--selector", "app.kubernetes.io/name=otel-webhook"]);
        let pods = self.kubectl(&["get", "pods", "--all-namespaces"]);
        [kubelet, tail("the product's logs", &logs.stdout), pods.stdout].concat()
    }

    /// Runs a shell command in a folder with the chart, and with helm, kubectl and otel-webhook on the PATH.
    pub fn shell(&self, command: &str) -> String {
        let ran = self.try_shell(command);
        assert!(ran.ok, "{command}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// The same for a command that may fail.
    pub fn try_shell(&self, command: &str) -> Ran {
        let path = env::var("PATH").unwrap_or_default();
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(&self.desk)
            .env("PATH", format!("{}:{path}", self.desk.join("bin").display()))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.desk)
            .output()
            .expect("a shell");
        Ran::from(&output)
    }

    /// Runs kubectl.
    pub fn kubectl(&self, args: &[&str]) -> Ran {
        self.node().plane.kubectl(args)
    }

    /// Makes an object, or changes it.
    pub fn apply(&self, object: &Value) {
        let args = ["apply", "--server-side", "--force-conflicts", "--filename", "-"];
        let ran = self.node().plane.kubectl_in(&args, &object.to_string());
        assert!(ran.ok, "kubectl apply failed: {}", ran.stderr);
    }

    /// Makes a namespace with labels.
    pub fn namespace(&self, name: &str, labels: &Value) {
        let metadata = json!({"name": name, "labels": labels});
        self.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
        until("the namespace has its service account", || {
            self.kubectl(&["get", "serviceaccount", "default", "--namespace", name]).ok.then_some(())
        });
    }

    /// Makes an Instrumentation, or changes it, and waits until the webhook uses it.
    pub fn instrumentation(&self, namespace: &str, name: &str, spec: &Value) {
        self.apply(&instrumentation(namespace, name, spec));
        // Its variables are in a pod that opts in; each replica has to know them.
        let probe = workload::asking("probe", &[("inject-sdk", name)], json!({"image": "probe"}));
        let mut probe = workload::restricted(probe);
        probe["metadata"]["namespace"] = namespace.into();
        let known = || {
            let args = ["create", "--dry-run=server", "--output=json", "--filename=-"];
            let ran = self.node().plane.kubectl_in(&args, &probe.to_string());
            let pod: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
            let injected = pod["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
            let wanted = spec["env"].as_array().cloned().unwrap_or_default();
            ran.ok && !injected.is_empty() && wanted.iter().all(|variable| injected.contains(variable))
        };
        until(&format!("Instrumentation {namespace}/{name} is used"), || {
            // The Service spreads connections over the replicas.
            (0..4).all(|_| known()).then_some(())
        });
    }

    /// An object, or the list of a kind.
    pub fn get(&self, namespace: &str, args: &[&str]) -> Value {
        self.find(namespace, args).unwrap_or_else(|| panic!("{args:?} in {namespace} does not exist"))
    }

    /// The same, where it may not exist.
    pub fn find(&self, namespace: &str, args: &[&str]) -> Option<Value> {
        let ran = self.kubectl(&[&["get", "--namespace", namespace, "--output=json"], args].concat());
        assert!(ran.ok || ran.stderr.contains("NotFound"), "kubectl get {args:?}: {}", ran.stderr);
        ran.ok.then(|| serde_json::from_str(&ran.stdout).expect("kubectl prints JSON"))
    }

    /// Waits until a Deployment is rolled out.
    pub fn rolled_out(&self, namespace: &str, deployment: &str) {
        let timeout = format!("--timeout={}s", otel_webhook_testkit::until::LIMIT.as_secs());
        let target = format!("deployment/{deployment}");
        let ran = self.kubectl(&["rollout", "status", &target, "--namespace", namespace, &timeout]);
        assert!(ran.ok, "{}{}\n{}", ran.stdout, ran.stderr, self.states(namespace));
    }

    /// What containers of a namespace's pods do, to understand a failure.
    pub fn states(&self, namespace: &str) -> String {
        let pods = self.get(namespace, &["pods"]);
        let of = |pod: &Value| {
            let status = &pod["status"];
            let all = [&status["initContainerStatuses"], &status["containerStatuses"]];
            let containers = all.into_iter().filter_map(Value::as_array).flatten();
            let described = containers
                .map(|one| format!("\n  {}: {} (last {})", one["name"], one["state"], one["lastState"]));
            format!("{} {}{}\n", pod["metadata"]["name"], status["phase"], described.collect::<String>())
        };
        pods["items"].as_array().into_iter().flatten().map(of).collect()
    }
}

fn instrumentation(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    })
}

/// A folder with the chart, the examples and the programs that the documentation names.
fn desk(node: &Node) -> PathBuf {
    let desk = tempfile::tempdir().expect("a folder").keep();
    let programs = desk.join("bin");
    fs::create_dir(&programs).expect("a folder");
    let link = |target: &Path, name: &Path| symlink(target, name).expect("a link");
    let tools = node.plane.tools();
    link(&tools.join("helm3"), &programs.join("helm"));
    link(&tools.join("kubectl"), &programs.join("kubectl"));
    link(Path::new(env!("CARGO_BIN_EXE_otel-webhook")), &programs.join("otel-webhook"));
    for folder in ["charts", "examples"] {
        link(&Path::new(ROOT).join(folder), &desk.join(folder));
    }
    desk
}
