//! The program under test, as a process.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use otel_webhook_server::tls::{DEFAULT_NAMES, SelfSigned};
use otel_webhook_testkit::{
    admin,
    cluster::{ports::free_ports, program::Program, secret_volume::SecretVolume},
    load::hostile,
    until::until,
};
use serde_json::Value;

use crate::registration::HOME;

/// The program under test: that of `OTEL_WEBHOOK_PROGRAM`, such as one that was built for a release, or the one that was
/// built with the tests.
fn program() -> PathBuf {
    std::env::var_os("OTEL_WEBHOOK_PROGRAM")
        .map_or_else(|| env!("CARGO_BIN_EXE_otel-webhook").into(), PathBuf::from)
}

/// `otel-webhook serve`, on the same ports however often it is started.
pub struct Webhook {
    process: Mutex<Option<Program>>,
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

    /// Where API servers reach an endpoint.
    pub fn url_of(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// Where its ports are: that of reviews, and that of health and metrics.
    pub fn addresses(&self) -> [SocketAddr; 2] {
        [self.port, self.admin_port].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Stops it by SIGTERM until the guard is dropped.
    pub fn stop(&self) -> Changed<'_> {
        let guard = Changed(self);
        let status = locked(&self.process).take().expect("it runs").stop();
        assert!(status.is_some_and(|status| status.success()), "SIGTERM ended it with {status:?}");
        guard
    }

    /// Starts it anew with more flags, until the guard is dropped.
    pub fn restart_with(&self, flags: &[&str]) -> Changed<'_> {
        let guard = self.stop();
        self.run(flags);
        guard
    }

    /// Stops it by SIGSTOP until the guard is dropped: its connections stay open, and nothing answers.
    pub fn pause(&self) -> Paused<'_> {
        self.running(|process| process.signal("STOP"));
        Paused(self)
    }

    /// The authority of its current certificate.
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
        admin::metric(self.addresses()[1], name_and_labels).unwrap_or_default()
    }

    /// How many files and connections it has open.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.id())).expect("it runs").count()
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.running(|process| process.id())
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

    /// The end of its log, for messages of failures.
    pub fn log_tail(&self) -> String {
        locked(&self.process).as_mut().map(Program::report).unwrap_or_default()
    }

    fn running<T>(&self, on: impl FnOnce(&mut Program) -> T) -> T {
        on(locked(&self.process).as_mut().expect("it runs"))
    }

    fn run(&self, flags: &[&str]) {
        let lines = fs::read_to_string(&self.log).unwrap_or_default().lines().count();
        self.log_start.store(lines, SeqCst);
        let [listen, admin_listen] = self.addresses().map(|address| address.to_string());
        let mut command = Command::new(program());
        {
            let volume = locked(&self.volume);
            command
                .args(["serve", "--listen", &listen, "--admin-listen", &admin_listen])
                .arg("--tls-cert")
                .arg(volume.certificate())
                .arg("--tls-key")
                .arg(volume.key())
                .args(["--log-format", "json", "--log", "info,otel_webhook=debug"])
                // Nothing removes it from an endpoint first.
                .args(["--shutdown-delay", "0"])
                .args(["--namespace", HOME, "--lease", "otel-webhook-controller"])
                .args(flags)
                .env("KUBECONFIG", &self.kubeconfig);
        }
        locked(&self.process).replace(Program::run(command, self.log.clone()));
        until("the webhook is ready", || {
            self.running(|process| assert!(!process.has_ended(), "the webhook ended\n{}", process.report()));
            admin::body(self.addresses()[1], "/readyz").filter(|body| body == "ready\n")
        });
    }

    /// Sends a review of a pod, as an API server does, and ignores the response.
    pub fn review(&self, review: &Value) {
        let response = hostile::send(self.addresses()[0], review).expect("a response");
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    }
}

/// The webhook runs as it always does again when this is dropped.
pub struct Changed<'w>(&'w Webhook);

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        drop(locked(&self.0.process).take());
        self.0.run(&[]);
    }
}

/// The webhook goes on when this is dropped.
pub struct Paused<'w>(&'w Webhook);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.running(|process| process.signal("CONT"));
    }
}

/// A certificate under its own authority.
pub fn pair() -> SelfSigned {
    SelfSigned::generate(&DEFAULT_NAMES).expect("a pair")
}

/// A case that failed left nothing half done: the values are replaced as a whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
