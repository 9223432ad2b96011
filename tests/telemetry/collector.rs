//! A real Collector, which writes what arrives to files.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use otel_webhook_testkit::cluster::program::Program;
use otel_webhook_testkit::containers::podman::Network;
use otel_webhook_testkit::until::{poll, until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::received::Received;

/// The ways in which telemetry arrives.
pub const PROTOCOLS: [(&str, u16); 2] = [("grpc", 4317), ("http", 4318)];

/// The kinds of telemetry.
const SIGNALS: [&str; 3] = ["traces", "metrics", "logs"];

/// What a Collector shows to clients, and wants of them.
#[derive(Default)]
pub struct Security {
    /// Its certificate and key; without them there is no TLS.
    pub certificate: Option<(String, String)>,
    /// The CA of client certificates; without it none is wanted.
    pub client_ca: Option<String>,
}

/// A Collector on loopback, in a network that it alone has at first.
pub struct Collector {
    program: Program,
    folder: TempDir,
    seen: Mutex<ReadSoFar>,
}

/// What was read of the files.
#[derive(Default)]
pub struct ReadSoFar {
    received: Received,
    /// The bytes of each file.
    read: HashMap<PathBuf, u64>,
}

impl ReadSoFar {
    /// Adds the new lines of a file; the last may be half written.
    fn read(&mut self, protocol: &'static str, path: &Path) {
        let read = self.read.entry(path.to_owned()).or_default();
        let mut file = File::open(path).expect("a file of the Collector");
        file.seek(SeekFrom::Start(*read)).expect("a place in the file");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("JSON is text");
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            *read += line.len() as u64;
            self.received.add(protocol, &serde_json::from_str(line).expect("JSON"));
        }
    }
}

impl Deref for ReadSoFar {
    type Target = Received;

    fn deref(&self) -> &Received {
        &self.received
    }
}

impl Collector {
    /// Starts one, and waits until it is ready.
    pub fn start(security: &Security) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("config.yaml");
        fs::write(&config, configuration(security, folder.path()).to_string()).expect("its own file");
        let mut command = Command::new("unshare");
        let script = "busybox ip link set lo up && exec \"$0\" --config \"$1\"";
        command.args(["--net", "/bin/sh", "-c", script]).arg(binary()).arg(config);
        let log = folder.path().join("collector.log");
        let mut collector =
            Self { program: Program::run(command, log.clone()), folder, seen: Mutex::default() };
        let ready = poll(|| {
            let ended = collector.program.has_ended();
            let ready = fs::read_to_string(&log).unwrap_or_default().contains("Everything is ready");
            (ended || ready).then_some(ready)
        });
        assert!(ready == Some(true), "{}", collector.program.report());
        collector
    }

    /// Where it is.
    pub fn network(&self) -> Network {
        Network::Of(self.program.id())
    }

    /// All that arrived up to now. Only what is new is read.
    pub fn received(&self) -> MutexGuard<'_, ReadSoFar> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (protocol, _) in PROTOCOLS {
            for signal in SIGNALS {
                seen.read(protocol, &self.folder.path().join(file(protocol, signal)));
            }
        }
        seen
    }

    /// Waits until `wanted` finds what it looks for in what arrived.
    pub fn wait<T>(&self, what: &str, mut wanted: impl FnMut(&Received) -> Option<T>) -> T {
        until(what, || wanted(&self.received()))
    }
}

/// It is one of the tools of the control plane.
fn binary() -> PathBuf {
    let tools = std::env::var_os("OTEL_WEBHOOK_CONTROL_PLANE").expect("run `make e2e-telemetry`");
    PathBuf::from(tools).join("collector")
}

fn file(protocol: &str, signal: &str) -> String {
    format!("{protocol}-{signal}.json")
}

/// One receiver and one file for each protocol and signal: what a file says arrived by that protocol.
fn configuration(security: &Security, folder: &Path) -> Value {
    let tls = tls(security, folder);
    let mut configuration = json!({"service": {"telemetry": {"metrics": {"level": "none"}}}});
    for (protocol, port) in PROTOCOLS {
        let receiver = format!("otlp/{protocol}");
        let mut settings = json!({"endpoint": format!("127.0.0.1:{port}")});
        if let Some(tls) = &tls {
            settings["tls"] = tls.clone();
        }
        configuration["receivers"][&receiver]["protocols"][protocol] = settings;
        for signal in SIGNALS {
            let exporter = format!("file/{protocol}-{signal}");
            let path = folder.join(file(protocol, signal));
            configuration["exporters"][&exporter] = json!({"path": path, "flush_interval": "100ms"});
            configuration["service"]["pipelines"][format!("{signal}/{protocol}")] =
                json!({"receivers": [receiver], "exporters": [exporter]});
        }
    }
    configuration
}

fn tls(security: &Security, folder: &Path) -> Option<Value> {
    let (certificate, key) = security.certificate.as_ref()?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("its own file");
        path
    };
    let mut tls = json!({"cert_file": write("tls.crt", certificate), "key_file": write("tls.key", key)});
    if let Some(ca) = &security.client_ca {
        tls["client_ca_file"] = json!(write("client-ca.crt", ca));
    }
    Some(tls)
}
