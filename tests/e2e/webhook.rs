//! The program under test, as a process.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use otel_webhook::tls::{DEFAULT_NAMES, SelfSigned};
use otel_webhook_testkit::{
    cluster::{ports::free_ports, secret_volume::SecretVolume},
    until::until,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use crate::{admin, registration::HOME};

/// The program under test: that of `OTEL_WEBHOOK_PROGRAM`, such as one that was built for a release, or the one that was
/// built with the tests.
fn program() -> PathBuf {
    std::env::var_os("OTEL_WEBHOOK_PROGRAM")
        .map_or_else(|| env!("CARGO_BIN_EXE_otel-webhook").into(), PathBuf::from)
}

/// Longer than a start or an end takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
const LOG_TAIL_LINES: usize = 20;

/// `otel-webhook serve`, on the same ports however often it is started.
pub struct Webhook {
    process: Mutex<Option<Child>>,
    /// How many lines of the log are of runs before this one.
    log_start: AtomicUsize,
    volume: Mutex<SecretVolume>,
    /// The authority of the certificate that it began with.
    pub first_authority: String,
    authority: Mutex<String>,
    port: u16,
    admin_port: u16,
    kubeconfig: PathBuf,
    log: PathBuf,
}

impl Webhook {
    /// Starts it as the user of `kubeconfig` and waits until it is ready. Its
    /// log is kept in `folder`.
    pub fn start(kubeconfig: &Path, folder: &Path) -> Self {
        Self::start_with(kubeconfig, folder, &[])
    }

    /// The same with more flags, until it is restarted.
    pub fn start_with(kubeconfig: &Path, folder: &Path, flags: &[&str]) -> Self {
        let [port, admin_port] = free_ports();
        let pair = pair();
        let webhook = Self {
            process: Mutex::default(),
            log_start: AtomicUsize::default(),
            volume: Mutex::new(SecretVolume::new(&pair.certificate_pem, &pair.key_pem)),
            authority: Mutex::new(pair.ca_pem.clone()),
            first_authority: pair.ca_pem,
            port,
            admin_port,
            kubeconfig: kubeconfig.to_owned(),
            log: folder.join("otel-webhook.log"),
        };
        webhook.run(flags);
        webhook
    }

    /// Where API servers send pods.
    pub fn url(&self) -> String {
        self.url_of("/mutate-v1-pod")
    }

    /// Where API servers reach an endpoint.
    pub fn url_of(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// Where its ports are.
    pub fn addresses(&self) -> [SocketAddr; 2] {
        [self.port, self.admin_port].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Stops it by SIGTERM until the guard is dropped.
    pub fn stop(&self) -> Changed<'_> {
        let guard = Changed(self);
        let status = locked(&self.process).take().map(terminate).expect("it runs");
        assert!(status.success(), "SIGTERM ended it with {status}\n{}", self.log_tail());
        guard
    }

    /// Starts it anew with more flags, until the guard is dropped.
    pub fn restart_with(&self, flags: &[&str]) -> Changed<'_> {
        let guard = self.stop();
        self.run(flags);
        guard
    }

    /// Stops it by SIGSTOP until the guard is dropped: its connections stay open, and nobody answers.
    pub fn pause(&self) -> Paused<'_> {
        self.signal("STOP");
        Paused(self)
    }

    /// The authority of its present certificate.
    pub fn authority(&self) -> String {
        locked(&self.authority).clone()
    }

    /// Replaces the certificate on disk, as the kubelet does.
    pub fn replace_certificate(&self, pair: &SelfSigned) {
        locked(&self.volume).swap(&pair.certificate_pem, &pair.key_pem);
        locked(&self.authority).clone_from(&pair.ca_pem);
    }

    /// The value of a metric; zero where it is not shown.
    pub fn metric(&self, name_and_labels: &str) -> u64 {
        let text = self.get("/metrics").unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix(name_and_labels)?.strip_prefix(' '));
        found.map_or(0, |value| value.parse().expect("a whole number"))
    }

    /// The most resident memory that it has had, in KiB.
    pub fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak.expect("a peak").parse().expect("a whole number")
    }

    /// How many files and connections it has open.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.id())).expect("it runs").count()
    }

    fn id(&self) -> u32 {
        locked(&self.process).as_ref().expect("it runs").id()
    }

    /// How many decisions for a language had this outcome.
    pub fn decisions(&self, language: &str, outcome: &str) -> u64 {
        self.metric(&format!(
            "otel_webhook_injections_total{{language=\"{language}\",outcome=\"{outcome}\"}}"
        ))
    }

    /// How many reviews of pods were answered.
    pub fn pod_reviews(&self) -> u64 {
        self.metric("otel_webhook_reviews_total{endpoint=\"/mutate-v1-pod\",outcome=\"Answered\"}")
    }

    /// The lines of the log since the last start.
    pub fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines = text.lines().skip(self.log_start.load(SeqCst));
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| line.into())).collect()
    }

    /// For messages of failures.
    pub fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let skipped = log.lines().count().saturating_sub(LOG_TAIL_LINES);
        log.lines().skip(skipped).collect::<Vec<_>>().join("\n")
    }

    fn signal(&self, name: &str) {
        // The standard library sends nothing but SIGKILL; every shell has `kill`.
        let id = locked(&self.process).as_ref().expect("it runs").id();
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {id}")]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIG{name} could not be sent");
    }

    fn run(&self, flags: &[&str]) {
        let log = File::options().create(true).append(true).open(&self.log).expect("a log");
        let lines = fs::read_to_string(&self.log).unwrap_or_default().lines().count();
        self.log_start.store(lines, SeqCst);
        let volume = locked(&self.volume);
        let child = Command::new(program())
            .arg("serve")
            .args(["--listen", &format!("127.0.0.1:{}", self.port)])
            .args(["--admin-listen", &format!("127.0.0.1:{}", self.admin_port)])
            .arg("--tls-cert")
            .arg(volume.certificate())
            .arg("--tls-key")
            .arg(volume.key())
            .args(["--log-format", "json", "--log", "info,otel_webhook=debug"])
            // Nobody takes it off an endpoint first.
            .args(["--shutdown-delay", "0"])
            .args(["--namespace", HOME, "--lease", "otel-webhook-controller"])
            .args(flags)
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the program can be started");
        locked(&self.process).replace(child);
        until("the webhook is ready", LIMIT, || {
            let ended = locked(&self.process).as_mut().and_then(|child| child.try_wait().ok()?);
            assert!(ended.is_none(), "the webhook ended: {ended:?}\n{}", self.log_tail());
            self.get("/readyz").filter(|body| body == "ready\n")
        });
    }

    /// Sends a review of a pod, as an API server does. The answer is of no interest.
    pub fn review(&self, review: &Value) {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.authority().as_bytes()).expect("a certificate");
        roots.add(authority).expect("an authority");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::new(config), name).expect("a session");
        let socket = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        let mut stream = StreamOwned::new(session, socket);
        let body = review.to_string();
        write!(
            stream,
            "POST /mutate-v1-pod HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("a request on its way");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }

    /// The body of a good answer of the admin port.
    fn get(&self, path: &str) -> Option<String> {
        admin::get(self.admin_port, path).and_then(|(is_good, body)| is_good.then_some(body))
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        locked(&self.process).take().map(terminate);
    }
}

/// The webhook runs as it always does again when this is dropped.
pub struct Changed<'w>(&'w Webhook);

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        locked(&self.0.process).take().map(terminate);
        self.0.run(&[]);
    }
}

/// The webhook goes on when this is dropped.
pub struct Paused<'w>(&'w Webhook);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.signal("CONT");
    }
}

/// A certificate under an authority of its own.
pub fn pair() -> SelfSigned {
    SelfSigned::generate(&DEFAULT_NAMES).expect("a pair")
}

/// A case that failed left nothing half done: the values are replaced as a whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn terminate(mut child: Child) -> ExitStatus {
    // The standard library sends nothing but SIGKILL; every shell has `kill`.
    let terminate = format!("kill -TERM {}", child.id());
    let _ = Command::new("sh").args(["-c", &terminate]).status();
    until("the webhook ends", LIMIT, || child.try_wait().ok().flatten())
}
