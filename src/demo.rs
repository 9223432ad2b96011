//! `demo`: runs the server, sends it one recorded review over TLS and shows the result.

use std::{
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::{
    client::{Connection, Target},
    diff,
    output::{self, Failure},
};
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_fleet::injected;
use otel_webhook_inject::{MESSAGE, Settings, reason::Reason, stamp::Entry};
use otel_webhook_server::{
    Endpoint, Listening, Shutdown, TerminationSignals, Transport,
    admission::Admission,
    tls::{
        self, CurrentCertificate, DEFAULT_NAMES, SelfSigned,
        trust::{Bundle, ShownChain},
    },
    webhook_router,
};
use otel_webhook_store::{Writer, manifest};
use otel_webhook_telemetry::Metrics;

/// The Instrumentations of the demo server.
const INSTRUMENTATIONS: &str = include_str!("../examples/instrumentation.yaml");

/// A recorded review of a kube-apiserver: the pod of a Deployment, created by its ReplicaSet.
const REVIEW: &str = include_str!("../examples/review.json");

/// The time for requests in flight when the demo ends.
const GRACE: Duration = Duration::from_secs(1);

/// Flags of the demo.
#[derive(Debug, Args)]
pub struct DemoFlags {
    /// Keep the server running, and print a curl command for it
    #[arg(long, env = "OTEL_WEBHOOK_DEMO_SERVE")]
    serve: bool,
}

/// Prints a part of the report. A closed pipe, as with `| head`, is no error.
fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    output::finish(out.write_all(text.as_bytes()).and_then(|()| out.flush()), ExitCode::SUCCESS).map(drop)
}

/// The demo's server.
struct Demo {
    address: SocketAddr,
    ca_pem: String,
    shutdown: Shutdown,
    served: JoinHandle<()>,
}

/// Runs the demo.
///
/// # Errors
/// If the server cannot start, or does not respond to the review.
pub fn run(flags: &DemoFlags) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(Failure::failed)?.block_on(show(flags))
}

async fn show(flags: &DemoFlags) -> Result<ExitCode, Failure> {
    let mut signals = TerminationSignals::catch().map_err(Failure::failed)?;
    let demo = Demo::start()?;
    say(&format!(
        "Serving on https://{} with a temporary self-signed certificate and the Instrumentations of examples/.\n",
        demo.address
    ))?;
    let began = Instant::now();
    let mut connection = demo.connect().await?;
    let handshake = began.elapsed();
    let began = Instant::now();
    let answer = review(&mut connection).await?;
    let first = began.elapsed();
    say(&format!("{}\n", report(&answer)?))?;
    // The first review is slower because of cold caches. API servers keep their connections as well.
    let began = Instant::now();
    review(&mut connection).await?;
    say(&format!(
        "TLS handshake {handshake:.1?}, first review {first:.1?}, the same again {:.1?}.\n\n",
        began.elapsed()
    ))?;
    if flags.serve {
        demo.keep_serving(&mut signals).await?;
    } else {
        say(NEXT_STEPS)?;
    }
    demo.shutdown.stop();
    demo.served.await.map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

impl Demo {
    fn start() -> Result<Self, Failure> {
        let mut writer = Writer::new(DefaultImages::default());
        for document in
            manifest::read(INSTRUMENTATIONS, "examples/instrumentation.yaml").map_err(Failure::failed)?
        {
            writer.put(&document.value);
        }
        writer.publish();
        let metrics = Arc::new(Metrics::new());
        let pair = SelfSigned::generate(&DEFAULT_NAMES).map_err(Failure::failed)?;
        let serving = pair.serving().map_err(Failure::failed)?;
        let certificate = Arc::new(CurrentCertificate::new(serving, Arc::clone(&metrics)));
        let config = Arc::new(tls::server_config(certificate).map_err(Failure::failed)?);
        let admission = Admission::new(writer.store(), Settings::default(), None, Arc::clone(&metrics));
        let router = webhook_router(Arc::new(admission), Arc::clone(&metrics));
        let listening =
            Listening::bind("webhook", (Ipv4Addr::LOCALHOST, 0).into()).map_err(Failure::failed)?;
        let (address, shutdown) = (listening.address, Shutdown::new());
        let transport = Transport::Tls { config, metrics };
        let served = tokio::spawn(listening.serve(router, transport, shutdown.phases(), GRACE));
        Ok(Self { address, ca_pem: pair.ca_pem, shutdown, served })
    }

    /// Connects like an API server that trusts the temporary CA only.
    async fn connect(&self) -> Result<Connection, Failure> {
        let target = Target { host: self.address.ip().to_string(), port: self.address.port() };
        let connection = Connection::open(&target).await.map_err(Failure::failed)?;
        let bundle = Bundle::from_pem(self.ca_pem.as_bytes()).map_err(Failure::failed)?;
        let shown = ShownChain::new(connection.chain.clone()).map_err(Failure::failed)?;
        bundle.verify(&shown, &target.host, Timestamp::now()).map_err(Failure::failed)?;
        Ok(connection)
    }

    /// Serves until a signal. Keeps the files for curl until then.
    async fn keep_serving(&self, signals: &mut TerminationSignals) -> Result<(), Failure> {
        let files = Files::write(&self.ca_pem)?;
        let folder = files.0.display();
        let (port, path) = (self.address.port(), Endpoint::MutatePod.path());
        say(&format!(
            "The server is still running; stop it with Ctrl-C. In another terminal:\n\n  curl --cacert {folder}/ca.crt -H 'Content-Type: application/json' \
             --data-binary @{folder}/review.json https://localhost:{port}{path}\n\n"
        ))?;
        signals.recv().await;
        Ok(())
    }
}

async fn review(connection: &mut Connection) -> Result<String, Failure> {
    let answer = connection.post(Endpoint::MutatePod.path(), REVIEW).await.map_err(Failure::failed)?;
    if answer.status.is_success() {
        Ok(answer.text)
    } else {
        Err(Failure::failed(format!("{}: {}", answer.status, answer.text)))
    }
}

/// A directory for curl, removed when the demo ends.
struct Files(PathBuf);

impl Files {
    fn write(ca_pem: &str) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("otel-webhook-demo-{}", std::process::id()));
        let write = || {
            std::fs::create_dir(&folder)?;
            std::fs::write(folder.join("ca.crt"), ca_pem)?;
            std::fs::write(folder.join("review.json"), REVIEW)
        };
        write().map_err(|error| Failure::failed(format!("{}: {error}", folder.display())))?;
        Ok(Self(folder))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Returns the report: the request, the change and the reasons.
fn report(answer: &str) -> Result<String, Failure> {
    let review: Value = serde_json::from_str(REVIEW).map_err(Failure::failed)?;
    let answer: Value = serde_json::from_str(answer).map_err(Failure::failed)?;
    let request = &review["request"];
    let before = &request["object"];
    let after = patched(before, &answer["response"])?;
    let owner = &before["metadata"]["ownerReferences"][0];
    let mut out = format!(
        "Sent: the AdmissionReview ({} bytes) of a pod of {}/{} in namespace {}, as a kube-apiserver sends it.\n\n",
        REVIEW.len(),
        text(&owner["kind"]),
        text(&owner["name"]),
        text(&request["namespace"]),
    );
    let name = format!("pod {}", text(&before["metadata"]["generateName"]));
    out.push_str(&diff::unified(&yaml(before), &yaml(&after), &name, diff::colour_wanted()));
    out.push('\n');
    let heads = ["CONTAINER", "LANGUAGE", "OUTCOME", "INSTRUMENTATION", "REASON"];
    for line in output::table(heads, injected::stamp(&after).iter().map(row)) {
        out.push_str(&line);
        out.push('\n');
    }
    if let Some(message) = after["metadata"]["annotations"][MESSAGE].as_str() {
        out.extend(["\n", message, "\n"]);
    }
    Ok(out)
}

/// Returns the pod with the patch of the response applied.
fn patched(before: &Value, response: &Value) -> Result<Value, Failure> {
    let mut after = before.clone();
    if let Some(patch) = response["patch"].as_str() {
        let patch = BASE64_STANDARD.decode(patch).map_err(Failure::failed)?;
        let patch: json_patch::Patch = serde_json::from_slice(&patch).map_err(Failure::failed)?;
        json_patch::patch(&mut after, &patch).map_err(Failure::failed)?;
    }
    Ok(after)
}

/// Returns an entry of `otel-webhook/status` as a row. Injected languages have no message in it, so that their
/// reason is the outcome; problems are in `otel-webhook/message`.
fn row(entry: &Entry<'_>) -> [String; 5] {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let reason = if entry.is_injected() { Reason::Injected.to_string() } else { or_dash(&entry.message) };
    let (language, outcome) = (entry.language.clone().into_owned(), entry.outcome.clone().into_owned());
    [entry.containers.join(","), language, outcome, or_dash(&entry.instrumentation), reason]
}

fn yaml(value: &Value) -> String {
    manifest::write(value, manifest::Style { indented_lists: true })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

const NEXT_STEPS: &str = "\
What to try next:
  otel-webhook demo --serve                                        the same, and curl against it
  otel-webhook explain -f examples/deployment.yaml --source examples    why, and why not
  otel-webhook inject  -f examples/deployment.yaml --source examples -o diff
  otel-webhook serve --help                                        in a cluster
";
