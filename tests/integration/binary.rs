//! The real program, serving on loopback.

use std::{
    fs::{self, File},
    net::SocketAddr,
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
};

use otel_webhook_server::tls::{DEFAULT_NAMES, SelfSigned};
use rustls::ClientConfig;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::harness::{Client, send_plain, soon, trusting, until};

/// A running `otel-webhook serve` with a directory as its source.
pub struct Binary {
    child: Child,
    folder: TempDir,
    ca_pem: String,
    webhook: SocketAddr,
}

impl Binary {
    /// Starts the program with these files as its source, and waits until it listens.
    pub async fn start(source: &[(&str, &str)], flags: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("source")).expect("a folder");
        for (name, text) in source {
            fs::write(path("source").join(name), text).expect("a file");
        }
        let pair = SelfSigned::generate(&DEFAULT_NAMES).expect("a pair");
        fs::write(path("tls.crt"), &pair.certificate_pem).expect("a file");
        fs::write(path("tls.key"), &pair.key_pem).expect("a file");
        let log = File::create(path("log")).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_otel-webhook"))
            .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(["--log-format", "json", "--shutdown-delay", "0"])
            .args(["--source".as_ref(), path("source").as_os_str()])
            .args(["--tls-cert".as_ref(), path("tls.crt").as_os_str()])
            .args(["--tls-key".as_ref(), path("tls.key").as_os_str()])
            .args(flags)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the program starts");
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut binary = Self { child, folder, ca_pem: pair.ca_pem, webhook: nowhere };
        binary.webhook = binary.address("webhook").await;
        binary
    }

    /// Starts `otel-webhook controller` with a cluster that cannot be reached.
    pub fn controller() -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "users": [{"name": "a", "user": {}}],
        });
        fs::write(path("config"), config.to_string()).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_otel-webhook"))
            .args(["controller", "--admin-listen", "127.0.0.1:0", "--page-listen", "127.0.0.1:0"])
            .args(["--log-format", "json"])
            .env("KUBECONFIG", path("config"))
            .stdin(Stdio::null())
            .stderr(File::create(path("log")).expect("a file"))
            .spawn()
            .expect("the program starts");
        Self { child, folder, ca_pem: String::new(), webhook: SocketAddr::from(([127, 0, 0, 1], 0)) }
    }

    /// A client on a new connection.
    pub async fn client(&self) -> Client {
        soon(Client::connect(self.webhook, Arc::new(trusting(&self.ca_pem)))).await.expect("a connection")
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    }

    /// Waits for the program to end.
    pub async fn ended(&mut self) -> ExitStatus {
        let mut ended = None;
        until(async || {
            ended = self.child.try_wait().expect("a child");
            ended.is_some()
        })
        .await;
        ended.expect("it was awaited")
    }

    /// A new connection with another configuration than that of [`Self::client`].
    pub async fn client_with(&self, adjust: impl FnOnce(&mut ClientConfig)) -> std::io::Result<Client> {
        let mut config = trusting(&self.ca_pem);
        adjust(&mut config);
        soon(Client::connect(self.webhook, Arc::new(config))).await
    }

    /// The URL of the webhook, and the file of the CA that verifies it.
    pub fn review_target(&self) -> (String, String) {
        let ca = self.folder.path().join("ca.crt");
        fs::write(&ca, &self.ca_pem).expect("a file");
        (format!("https://localhost:{}", self.webhook.port()), ca.to_str().expect("UTF-8").to_owned())
    }

    /// The metrics, as the admin port gives them.
    pub async fn metrics(&mut self) -> String {
        let address = self.address("admin").await;
        send_plain(address, b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await
    }

    /// The log lines so far.
    pub fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("log")).expect("the log");
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Where the program listens for "webhook" or "admin", as it says itself.
    pub async fn address(&mut self, port: &str) -> SocketAddr {
        let wanted = format!("listening for {port}");
        let mut found = None;
        until(async || {
            assert!(self.child.try_wait().expect("a child").is_none(), "it ended: {:?}", self.log());
            let lines = self.log();
            let line = lines.iter().find(|line| line["message"] == wanted.as_str());
            found = line.and_then(|line| line["address"].as_str()?.parse().ok());
            found.is_some()
        })
        .await;
        found.expect("it was awaited")
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        self.child.kill().expect("the program can be stopped");
        self.child.wait().expect("the program ends");
    }
}
