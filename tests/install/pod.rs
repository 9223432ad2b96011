//! The pod of the chart's Deployment, as a process next to the API server: what
//! a kubelet would make of it.

use std::cell::RefCell;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use otel_webhook_testkit::{
    admin,
    cluster::{created::name, ports::free_ports, program::Program, secret_volume::SecretVolume},
    objects::items,
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// The program under test: that of `OTEL_WEBHOOK_PROGRAM`, such as one of a release, or the one that was built with the
/// tests.
pub fn program() -> PathBuf {
    std::env::var_os("OTEL_WEBHOOK_PROGRAM")
        .map_or_else(|| env!("CARGO_BIN_EXE_otel-webhook").into(), PathBuf::from)
}

/// Where the webhook of a release is reached, before there is one: the chart has to be told.
#[derive(Clone, Copy)]
pub struct Ports {
    /// That of reviews.
    pub webhook: u16,
    admin: u16,
}

impl Ports {
    pub fn free() -> Self {
        let [webhook, admin] = free_ports();
        Self { webhook, admin }
    }

    /// What the chart registers in place of the Service.
    pub fn url(self) -> String {
        format!("https://localhost:{}", self.webhook)
    }
}

/// A running pod.
pub struct Pod<'c> {
    cluster: &'c Cluster,
    namespace: String,
    deployment: &'static str,
    executable: PathBuf,
    ports: Ports,
    /// Secrets by the folder at which the container sees them.
    volumes: Vec<(String, String, RefCell<SecretVolume>)>,
    program: Option<Program>,
}

impl<'c> Pod<'c> {
    /// Starts what the Deployment says, and waits until it is ready.
    pub fn start(cluster: &'c Cluster, namespace: &str, ports: Ports) -> Self {
        Self::start_program(cluster, namespace, ports, program())
    }

    /// Starts what the Deployment of this name says.
    pub fn of(cluster: &'c Cluster, namespace: &str, deployment: &'static str, ports: Ports) -> Self {
        Self::of_program(cluster, namespace, deployment, ports, program())
    }

    /// Starts what the Deployment says with the program of some version, and waits until it is ready.
    pub fn start_program(cluster: &'c Cluster, namespace: &str, ports: Ports, executable: PathBuf) -> Self {
        let mut pod = Self::of_program(cluster, namespace, "otel-webhook", ports, executable);
        pod.until_ready();
        pod
    }

    fn of_program(
        cluster: &'c Cluster,
        namespace: &str,
        deployment: &'static str,
        ports: Ports,
        executable: PathBuf,
    ) -> Self {
        let mut pod = Self {
            cluster,
            namespace: namespace.to_owned(),
            deployment,
            executable,
            ports,
            volumes: Vec::new(),
            program: None,
        };
        pod.restart();
        pod
    }

    /// Ends the process and starts it anew as the Deployment now is: a rollout.
    pub fn restart(&mut self) {
        self.program = None;
        let template = self.template();
        let spec = &template["spec"];
        self.volumes = self.mounts(spec);
        let account = spec["serviceAccountName"].as_str().expect("a service account");
        let container = &spec["containers"][0];
        let mut command = Command::new(&self.executable);
        command.env_clear().env("KUBECONFIG", self.kubeconfig(account));
        command.args(self.arguments(container));
        for variable in items(&container["env"]) {
            command.env(name(variable), self.value(variable));
        }
        self.program = Some(Program::run(command, self.cluster.plane.dir().join("otel-webhook.log")));
    }

    /// Waits for its readiness probe.
    pub fn until_ready(&mut self) {
        until(&format!("{} is ready", self.deployment), || {
            let program = self.program.as_mut().expect("it was started");
            assert!(!program.has_ended(), "it ended\n{}", program.report());
            let probe = &self.template()["spec"]["containers"][0]["readinessProbe"]["httpGet"];
            let path = probe["path"].as_str().expect("a path").to_owned();
            self.get(&path).then_some(())
        });
    }

    /// Mounts the Secrets anew, as a kubelet does some time after one has
    /// changed, and waits until the new certificate is served.
    pub fn mount_again(&self) {
        let log = self.cluster.plane.dir().join("otel-webhook.log");
        let served =
            || fs::read_to_string(&log).unwrap_or_default().matches("serving a new certificate").count();
        let before = served();
        for (secret, _, volume) in &self.volumes {
            let [certificate, key] = self.pair(secret);
            volume.borrow_mut().swap(&certificate, &key);
        }
        until("the mounted certificate is served", || (served() > before).then_some(()));
    }

    /// The container's arguments, with the addresses and the folders of this machine.
    pub fn arguments(&self, container: &Value) -> Vec<String> {
        let ports =
            [("webhook", "--listen", self.ports.webhook), ("admin", "--admin-listen", self.ports.admin)];
        // The controller has no port for reviews.
        let has = |port: &str| items(&container["ports"]).any(|own| name(own) == port);
        let addresses = ports.into_iter().filter(|(port, ..)| has(port)).map(|(_, flag, port)| (flag, port));
        let addresses: Vec<_> = addresses.collect();
        let mut arguments = Vec::new();
        for argument in items(&container["args"]) {
            let mut argument = argument.as_str().expect("text").to_owned();
            for (flag, port) in &addresses {
                if argument.starts_with(&format!("{flag}=")) {
                    argument = format!("{flag}=127.0.0.1:{port}");
                }
            }
            for (_, path, volume) in &self.volumes {
                let folder = volume.borrow().path().display().to_string();
                argument = argument.replace(path, &folder);
            }
            arguments.push(self.expanded(container, &argument));
        }
        assert!(!addresses.is_empty(), "{container}");
        if arguments[0] == "controller" {
            // Pods have their own addresses, and these processes do not.
            arguments.push("--page-listen=off".to_owned());
        }
        for (flag, _) in addresses {
            let there = arguments.iter().any(|argument| argument.starts_with(flag));
            assert!(there, "{flag} is not among the arguments of the chart: {arguments:?}");
        }
        arguments
    }

    /// `$(NAME)` is replaced by the variable's value, as Kubernetes does.
    fn expanded(&self, container: &Value, argument: &str) -> String {
        items(&container["env"]).fold(argument.to_owned(), |text, variable| {
            text.replace(&format!("$({})", name(variable)), &self.value(variable))
        })
    }

    fn value(&self, variable: &Value) -> String {
        if let Some(value) = variable["value"].as_str() {
            return value.to_owned();
        }
        match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
            Some("metadata.namespace") => self.namespace.clone(),
            Some("metadata.name") => format!("{}-0", self.deployment),
            _ => panic!("a variable that is not known here: {variable}"),
        }
    }

    fn template(&self) -> Value {
        let found = self.cluster.find_in(&self.namespace, "deployment", self.deployment);
        found.expect("a Deployment")["spec"]["template"].take()
    }

    fn mounts(&self, spec: &Value) -> Vec<(String, String, RefCell<SecretVolume>)> {
        let secrets = items(&spec["volumes"]).filter_map(|volume| {
            let secret = volume["secret"]["secretName"].as_str()?;
            let mut mounts = items(&spec["containers"][0]["volumeMounts"]);
            let mount = mounts.find(|mount| name(mount) == name(volume))?;
            Some((secret.to_owned(), mount["mountPath"].as_str()?.to_owned()))
        });
        let mounted = secrets.map(|(secret, path)| {
            let [certificate, key] = self.pair(&secret);
            (secret, path, RefCell::new(SecretVolume::new(&certificate, &key)))
        });
        mounted.collect()
    }

    /// Waits for a Secret, as a pod does.
    fn pair(&self, secret: &str) -> [String; 2] {
        ["tls.crt", "tls.key"].map(|key| self.cluster.secret(&self.namespace, secret, key))
    }

    /// For the service account of the Deployment.
    fn kubeconfig(&self, account: &str) -> PathBuf {
        let path = self.cluster.plane.kubeconfig_of(&self.namespace, account);
        let text = fs::read_to_string(&path).expect("a kubeconfig");
        let mut config: Value = serde_json::from_str(&text).expect("JSON");
        config["contexts"][0]["context"]["namespace"] = json!(self.namespace);
        fs::write(&path, config.to_string()).expect("the scratch folder is writable");
        path
    }

    /// Whether the admin port responds with status 200.
    fn get(&self, path: &str) -> bool {
        admin::body(SocketAddr::from(([127, 0, 0, 1], self.ports.admin)), path).is_some()
    }
}
