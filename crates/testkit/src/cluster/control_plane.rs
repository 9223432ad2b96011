//! A real Kubernetes control plane: etcd, the API server and the controller manager,
//! without nodes and without a scheduler.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::created::Created;
use super::manifests;
use super::ports::free_ports;
use super::program::Program;
use crate::files;
use crate::until::{poll, until};

/// A kube-apiserver with its etcd and controller manager, on loopback or an address of a node, for one test run.
pub struct ControlPlane {
    /// In the order of their start.
    programs: Vec<Part>,
    binaries: PathBuf,
    server: String,
    kubeconfig: PathBuf,
    dir: TempDir,
}

/// A program of the control plane, with what it takes to start it again.
struct Part {
    name: String,
    options: String,
    program: Program,
}

/// What a finished command left.
pub struct Ran {
    /// Whether its exit code was zero.
    pub ok: bool,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl From<&Output> for Ran {
    fn from(output: &Output) -> Self {
        Self {
            ok: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl ControlPlane {
    /// Starts etcd, kube-apiserver and kube-controller-manager and waits until
    /// pods can be created in the namespace `default`: the API server refuses
    /// them before the namespace has its service account.
    ///
    /// Panics with the failed step and the end of each program's log.
    pub fn start() -> Self {
        Self::start_on(Ipv4Addr::LOCALHOST)
    }

    /// The same with an API server that is reached by this address of the machine.
    pub(super) fn start_on(address: Ipv4Addr) -> Self {
        let mut plane = Self::without_controllers_on(address);
        plane.start_controller_manager();
        plane
    }

    /// The same without kube-controller-manager: nothing is made but what is asked for.
    pub fn without_controllers() -> Self {
        Self::without_controllers_on(Ipv4Addr::LOCALHOST)
    }

    fn without_controllers_on(address: Ipv4Addr) -> Self {
        let binaries = std::env::var_os("OTEL_WEBHOOK_CONTROL_PLANE")
            .expect("OTEL_WEBHOOK_CONTROL_PLANE names no folder of binaries: run `make e2e`");
        let [client_port, peer_port, secure_port] = free_ports();
        let dir = scratch_folder();
        let mut plane = Self {
            programs: Vec::new(),
            binaries: binaries.into(),
            server: format!("https://{address}:{secure_port}"),
            kubeconfig: dir.path().join("kubeconfig"),
            dir,
        };
        plane.write_credentials();
        plane.start_etcd(client_port, peer_port);
        plane.start_api_server(client_port, address, secure_port);
        plane
    }

    /// For the administrator `admin`, by token.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The scratch folder of this run, with the programs' logs.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The lines of the API server's log up to now.
    pub fn api_server_log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.dir().join("kube-apiserver.log")).expect("a log");
        log.lines().map(str::to_owned).collect()
    }

    /// The lines of that log after the first `before` that contain all of these.
    pub fn logged_since(&self, before: usize, parts: &[&str]) -> Vec<String> {
        let has_all = |line: &String| parts.iter().all(|part| line.contains(part));
        self.api_server_log().into_iter().skip(before).filter(has_all).collect()
    }

    /// What the API server was asked, one JSON object a line.
    pub fn audit_log(&self) -> PathBuf {
        self.dir().join("audit.log")
    }

    /// Runs kubectl.
    pub fn kubectl(&self, args: &[&str]) -> Ran {
        self.kubectl_in(args, "")
    }

    /// Runs kubectl with `stdin` as its standard input.
    pub fn kubectl_in(&self, args: &[&str], stdin: &str) -> Ran {
        // A file, not a pipe: nobody has to feed it while kubectl runs.
        let mut input = tempfile::tempfile().expect("a temporary file");
        input.write_all(stdin.as_bytes()).expect("a writable file");
        input.rewind().expect("a seekable file");
        let output = Command::new(self.tools().join("kubectl"))
            .args(args)
            .env("KUBECONFIG", &self.kubeconfig)
            // Neither the preferences nor the cache of whoever runs the tests.
            .env("HOME", self.dir())
            .stdin(input)
            .output()
            .expect("kubectl can be started");
        Ran::from(&output)
    }

    /// Runs kubectl, and panics with its message if it fails.
    pub fn run_kubectl(&self, args: &[&str]) -> Ran {
        let ran = self.kubectl(args);
        assert!(ran.ok, "kubectl {args:?} failed: {}", ran.stderr);
        ran
    }

    /// An object, or the list of a kind.
    pub fn get(&self, namespace: &str, args: &[&str]) -> Value {
        let ran = self.run_kubectl(&[&["get", "--namespace", namespace, "--output", "json"], args].concat());
        serde_json::from_str(&ran.stdout).expect("kubectl prints JSON")
    }

    /// Creates objects or changes them, by server-side apply: it succeeds as well
    /// when a controller creates the same object at the same time.
    pub fn apply_server_side(&self, manifests: &str) {
        let args = ["apply", "--server-side", "--force-conflicts", "--filename", "-"];
        let ran = self.kubectl_in(&args, manifests);
        assert!(ran.ok, "kubectl apply failed: {}", ran.stderr);
    }

    /// Applies our CRD, and waits until its kind is served.
    pub fn install_crd(&self) {
        let crd = fs::read_to_string(files::path("manifests/crd/crd.yaml")).expect("the CRD");
        self.apply_server_side(&crd);
        until("the CRD is served", || {
            self.kubectl(&["get", "instrumentations.opentelemetry.io"]).ok.then_some(())
        });
    }

    /// Makes a namespace with this metadata, in which pods can be created at once.
    pub fn namespace(&self, name: &str, mut metadata: Value) {
        metadata["name"] = name.into();
        // The API server rejects pods before their service account is there.
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}},
        ]});
        self.apply_server_side(&list.to_string());
    }

    /// Makes an Instrumentation, or changes it, as soon as its kind is served.
    pub fn instrumentation(&self, namespace: &str, name: &str, spec: &Value) {
        let object = manifests::instrumentation(namespace, name, spec).to_string();
        let args = ["apply", "--server-side", "--force-conflicts", "--filename", "-"];
        let mut refusal = String::new();
        let stored = poll(|| {
            let ran = self.kubectl_in(&args, &object);
            refusal = ran.stderr;
            ran.ok.then_some(())
        });
        assert!(stored.is_some(), "the Instrumentation {namespace}/{name} is not stored: {refusal}");
    }

    /// Creates a pod, with more flags of kubectl.
    pub fn create_pod(&self, namespace: &str, pod: &Value, more: &[&str]) -> Created {
        let args = ["create", "--namespace", namespace, "--output", "json", "--filename", "-"];
        let ran = self.kubectl_in(&[&args, more].concat(), &pod.to_string());
        assert!(ran.ok, "the pod was rejected: {}", ran.stderr);
        let pod = serde_json::from_str(&ran.stdout).expect("kubectl prints JSON");
        Created { pod, warnings: ran.stderr }
    }

    /// A kubeconfig for a service account, once that is there.
    pub fn kubeconfig_of(&self, namespace: &str, account: &str) -> PathBuf {
        let args = ["create", "token", account, "--namespace", namespace, "--duration=2h"];
        let token = until("a token of the service account", || {
            let ran = self.kubectl(&args);
            ran.ok.then_some(ran.stdout)
        });
        let admin = fs::read_to_string(&self.kubeconfig).expect("the administrator's kubeconfig");
        let mut config: Value = serde_json::from_str(&admin).expect("JSON");
        config["users"][0]["user"] = json!({"token": token.trim()});
        let name = format!("{namespace}-{account}.kubeconfig");
        self.write(&name, &config.to_string());
        self.dir().join(name)
    }

    /// Applies manifests and panics with kubectl's complaint if it has one.
    pub fn apply(&self, yaml: &str) -> Ran {
        let ran = self.kubectl_in(&["apply", "--filename", "-"], yaml);
        assert!(ran.ok, "kubectl apply failed: {}", ran.stderr);
        ran
    }

    fn write_credentials(&self) {
        let key = rcgen::KeyPair::generate().expect("a key for service accounts");
        self.write("sa.key", &key.serialize_pem());
        self.write("sa.pub", &key.public_key_pem());
        let random = fs::read_to_string("/proc/sys/kernel/random/uuid");
        let token = random.as_deref().map(str::trim_end).expect("a random token");
        self.write("tokens.csv", &format!("{token},admin,admin,system:masters"));
        // One entry for each request, when it is answered, without bodies.
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
            "omitStages": ["RequestReceived"], "rules": [{ "level": "Metadata" }],
        });
        self.write("audit-policy.yaml", &policy.to_string());
        // The API server makes its certificate when it starts and puts the
        // authority that signed it into the same file.
        let authority = self.dir().join("certs/apiserver.crt");
        let cluster = json!({ "server": self.server, "certificate-authority": authority });
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{ "name": "test", "cluster": cluster }],
            "users": [{ "name": "admin", "user": { "token": token } }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "admin" } }],
        });
        self.write("kubeconfig", &kubeconfig.to_string());
    }

    /// Not waited for: the API server does that. Without synced writes: nothing
    /// here has to outlive a power cut.
    fn start_etcd(&mut self, client_port: u16, peer_port: u16) {
        let options = format!(
            "--data-dir=etcd
            --listen-client-urls=http://127.0.0.1:{client_port}
            --advertise-client-urls=http://127.0.0.1:{client_port}
            --listen-peer-urls=http://127.0.0.1:{peer_port}
            --initial-advertise-peer-urls=http://127.0.0.1:{peer_port}
            --initial-cluster=default=http://127.0.0.1:{peer_port}
            --unsafe-no-fsync"
        );
        self.run("etcd", &options);
    }

    /// On loopback without endpoints of the service `kubernetes`: it is refused there.
    fn start_api_server(&mut self, etcd_port: u16, address: Ipv4Addr, secure_port: u16) {
        let reconciler = if address.is_loopback() { "none" } else { "lease" };
        let options = format!(
            "--etcd-servers=http://127.0.0.1:{etcd_port}
            --bind-address={address}
            --advertise-address={address}
            --secure-port={secure_port}
            --endpoint-reconciler-type={reconciler}
            --kubelet-preferred-address-types=InternalIP
            --cert-dir=certs
            --service-account-issuer=https://{address}:{secure_port}
            --service-account-key-file=sa.pub
            --service-account-signing-key-file=sa.key
            --service-cluster-ip-range=10.96.0.0/16
            --token-auth-file=tokens.csv
            --authorization-mode=RBAC
            --allow-privileged
            --audit-policy-file=audit-policy.yaml
            --audit-log-path=audit.log"
        );
        self.run("kube-apiserver", &options);
        self.wait("the API server's start", &["get", "--raw", "/readyz"]);
    }

    /// Each controller with its own service account, as clusters have it. Without a port: nobody asks it for
    /// its health or its metrics.
    fn start_controller_manager(&mut self) {
        let options = "--kubeconfig=kubeconfig
            --service-account-private-key-file=sa.key
            --root-ca-file=certs/apiserver.crt
            --use-service-account-credentials=true
            --leader-elect=false
            --secure-port=0";
        self.run("kube-controller-manager", options);
        let account = ["get", "serviceaccount", "default"];
        self.wait("the wait for the default service account", &account);
    }

    /// Starts the scheduler.
    pub(super) fn start_scheduler(&mut self) {
        let options = "--kubeconfig=kubeconfig
            --leader-elect=false
            --secure-port=0
            --authentication-skip-lookup";
        self.run("kube-scheduler", options);
    }

    /// The folder with the programs of the control plane and the tools next to it.
    pub fn tools(&self) -> &Path {
        &self.binaries
    }

    /// Starts one of the programs in the scratch folder, with one option on
    /// each line; it ends with the control plane.
    pub fn run(&mut self, name: &str, options: &str) {
        let program = self.spawn(name, options);
        self.programs.push(Part { name: name.to_owned(), options: options.to_owned(), program });
    }

    /// Stops one of the programs.
    pub fn stop(&mut self, name: &str) {
        self.part(name).program.stop();
    }

    /// Starts a program that was stopped, with the same options, and waits until the API server is ready.
    pub fn start_again(&mut self, name: &str) {
        let options = self.part(name).options.clone();
        let program = self.spawn(name, &options);
        self.part(name).program = program;
        self.wait("the API server's next start", &["get", "--raw", "/readyz"]);
    }

    /// The process of one of the programs.
    pub fn process(&self, name: &str) -> u32 {
        let part = self.programs.iter().find(|part| part.name == name);
        part.expect("a program of the control plane").program.id()
    }

    /// Sends a signal to one of the programs, such as `STOP`.
    pub fn signal(&mut self, signal: &str, name: &str) {
        self.part(name).program.signal(signal);
    }

    fn part(&mut self, name: &str) -> &mut Part {
        self.programs.iter_mut().find(|part| part.name == name).expect("a program of the control plane")
    }

    /// Starts one of the programs; it ends when it is dropped.
    pub fn spawn(&self, name: &str, options: &str) -> Program {
        let log = self.dir().join(format!("{name}.log"));
        Program::start(&self.binaries.join(name), options, self.dir(), log)
    }

    /// Waits until kubectl succeeds, but not longer than all programs run. Tells
    /// of all: what one of them stumbles over is often in the log of another.
    pub(super) fn wait(&mut self, step: &str, kubectl: &[&str]) {
        let args = [&["--request-timeout=10s"], kubectl].concat();
        let ready = poll(|| {
            let ended = self.programs.iter_mut().any(|part| part.program.has_ended());
            (ended || self.kubectl(&args).ok).then_some(!ended)
        });
        let reports: String = self.programs.iter_mut().map(|part| part.program.report()).collect();
        assert!(ready == Some(true), "{step} failed\n{reports}");
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.dir().join(name), text).expect("the scratch folder is writable");
    }
}

impl Drop for ControlPlane {
    /// In the reverse order: without its etcd, an API server does not end for minutes.
    fn drop(&mut self) {
        for part in self.programs.iter_mut().rev() {
            part.program.stop();
        }
    }
}

fn scratch_folder() -> TempDir {
    let mut dir = TempDir::with_prefix("otel-webhook-").expect("a scratch folder");
    if std::env::var_os("OTEL_WEBHOOK_KEEP_LOGS").is_some() {
        dir.disable_cleanup(true);
        eprintln!("logs of the control plane: {}", dir.path().display());
    }
    dir
}
