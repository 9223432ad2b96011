//! `otel-webhook serve`: the webhook server.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use tokio::task::JoinHandle;

use super::{Failure, InjectionFlags, flags::KUBERNETES};
use crate::{
    admission::Admission,
    server::{
        Condition, Health, Listening, Shutdown, TerminationSignals, Transport, admin_router, webhook_router,
    },
    store::{Store, Writer, cluster::Cluster, dir::Follower, watch},
    telemetry::{LogFormat, Metrics, init_logging},
    tls::{self, CertificateFiles, CurrentCertificate, DEFAULT_NAMES, SelfSigned, ServingCertificate},
};

const EXAMPLES: &str = "\
Examples:
  # In a cluster, with the certificate of a mounted Secret
  otel-webhook serve --tls-cert /certs/tls.crt --tls-key /certs/tls.key

  # Without a cluster: Instrumentations from files, a throw-away certificate
  otel-webhook serve --source examples --tls-self-signed --listen 127.0.0.1:9443";

/// Flags of the server.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeFlags {
    /// Address of the webhook (HTTPS)
    #[arg(
        long,
        env = "OTEL_WEBHOOK_LISTEN",
        default_value = "[::]:9443",
        value_name = "ADDRESS",
        help_heading = "Server"
    )]
    listen: SocketAddr,

    /// Address of health and metrics (HTTP)
    #[arg(
        long,
        env = "OTEL_WEBHOOK_ADMIN_LISTEN",
        default_value = "127.0.0.1:8080",
        value_name = "ADDRESS",
        help_heading = "Server"
    )]
    admin_listen: SocketAddr,

    /// Where Instrumentations come from: "kubernetes", or a directory of YAML and JSON files
    #[arg(
        long,
        env = "OTEL_WEBHOOK_SOURCE",
        default_value = KUBERNETES,
        value_name = "kubernetes|DIR",
        help_heading = "Server"
    )]
    source: String,

    /// Seconds to go on accepting after a signal, while the endpoint is taken off
    #[arg(
        long,
        env = "OTEL_WEBHOOK_SHUTDOWN_DELAY",
        default_value_t = 5,
        value_name = "SECONDS",
        help_heading = "Server"
    )]
    shutdown_delay: u64,

    /// Seconds that requests in flight have to finish
    #[arg(
        long,
        env = "OTEL_WEBHOOK_SHUTDOWN_GRACE",
        default_value_t = 10,
        value_name = "SECONDS",
        help_heading = "Server"
    )]
    shutdown_grace: u64,

    /// Warn whoever applies a workload of what will be injected, not only of what will not
    #[arg(long, env = "OTEL_WEBHOOK_PREVIEW_WARNINGS", help_heading = "Server")]
    preview_warnings: bool,

    /// File of the serving certificate and its chain (PEM); looked at every second
    #[arg(
        long,
        env = "OTEL_WEBHOOK_TLS_CERT",
        value_name = "FILE",
        requires = "tls_key",
        help_heading = "Certificate",
        required_unless_present = "tls_self_signed"
    )]
    tls_cert: Option<PathBuf>,

    /// File of its private key (PEM)
    #[arg(
        long,
        env = "OTEL_WEBHOOK_TLS_KEY",
        value_name = "FILE",
        requires = "tls_cert",
        help_heading = "Certificate"
    )]
    tls_key: Option<PathBuf>,

    /// Make a throw-away certificate for localhost at the start, to try things out
    #[arg(long, env = "OTEL_WEBHOOK_TLS_SELF_SIGNED", conflicts_with_all = ["tls_cert", "tls_key"],
        help_heading = "Certificate")]
    tls_self_signed: bool,

    /// How log lines are written
    #[arg(long, env = "OTEL_WEBHOOK_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text, help_heading = "Logs")]
    log_format: LogFormat,

    /// What is logged: a level, or directives such as `info,otel_webhook=debug`
    #[arg(
        long,
        env = "OTEL_WEBHOOK_LOG",
        default_value = "info",
        value_name = "LEVEL",
        help_heading = "Logs"
    )]
    log: String,

    #[command(flatten)]
    injection: InjectionFlags,
}

/// What is shared by the parts of a running server.
struct Running {
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
}

/// Runs the server until it is told to end.
///
/// # Errors
/// What keeps it from starting.
pub fn run(flags: &ServeFlags) -> Result<ExitCode, Failure> {
    init_logging(flags.log_format, &flags.log).map_err(Failure::unreadable)?;
    // Reviews take microseconds: a few threads are plenty, however many cores a node has.
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    runtime.map_err(Failure::failed)?.block_on(serve(flags))
}

async fn serve(flags: &ServeFlags) -> Result<ExitCode, Failure> {
    let mut signals = TerminationSignals::catch().map_err(Failure::failed)?;
    let running = Running {
        health: Arc::new(Health::new()),
        metrics: Arc::new(Metrics::new()),
        shutdown: Shutdown::new(),
    };
    let transport = running.transport(flags).await?;
    let (store, cluster, following) = running.follow(flags).await?;
    let admission = Admission::new(store, flags.injection.settings(), cluster, Arc::clone(&running.metrics))
        .with_images(flags.injection.images())
        .with_preview_warnings(flags.preview_warnings);
    let webhook = Listening::bind("webhook", flags.listen).map_err(Failure::failed)?;
    let admin = Listening::bind("admin", flags.admin_listen).map_err(Failure::failed)?;
    let grace = Duration::from_secs(flags.shutdown_grace);
    let router = webhook_router(Arc::new(admission), Arc::clone(&running.metrics));
    let served = tokio::spawn(webhook.serve(router, transport, running.shutdown.phases(), grace));
    let router = admin_router(Arc::clone(&running.health), Arc::clone(&running.metrics));
    let administered = tokio::spawn(admin.serve(router, Transport::Plain, running.shutdown.phases(), grace));
    let delay = Duration::from_secs(flags.shutdown_delay);
    running.shutdown.on_signal(&mut signals, &running.health, delay).await;
    following.abort();
    let (served, administered) = tokio::join!(served, administered);
    served.and(administered).map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

impl Running {
    /// The certificate, followed where it comes from files.
    async fn transport(&self, flags: &ServeFlags) -> Result<Transport, Failure> {
        let metrics = Arc::clone(&self.metrics);
        let current = match (&flags.tls_cert, &flags.tls_key) {
            (Some(certificate), Some(key)) => {
                let mut files = CertificateFiles::new(certificate, key);
                let first = files.load().await.map_err(Failure::failed)?;
                let current = Arc::new(CurrentCertificate::new(first, Arc::clone(&metrics)));
                let following = files.follow(
                    Arc::clone(&current),
                    Arc::clone(&metrics),
                    CertificateFiles::INTERVAL,
                    self.shutdown.stopping(),
                );
                tokio::spawn(following);
                current
            }
            _ => Arc::new(CurrentCertificate::new(self_signed()?, Arc::clone(&metrics))),
        };
        let config = tls::server_config(current).map_err(Failure::failed)?;
        Ok(Transport::Tls { config: Arc::new(config), metrics })
    }

    /// The store, and the task that keeps it as the source is.
    async fn follow(&self, flags: &ServeFlags) -> Result<(Store, Option<Cluster>, JoinHandle<()>), Failure> {
        let writer = Writer::new(flags.injection.images()).counted(Arc::clone(&self.metrics));
        let store = writer.store();
        let listed = self.health.condition("store", "the Instrumentations and namespaces are not listed yet");
        if flags.source != KUBERNETES {
            let follower = Follower::start(flags.source.clone().into(), writer).map_err(Failure::failed)?;
            ready(&listed);
            return Ok((store, None, tokio::spawn(follower.run())));
        }
        let client = kube::Client::try_default().await.map_err(|error| no_cluster(&error))?;
        let cluster = Cluster::new(client.clone());
        let following = tokio::spawn(watch::follow(client, writer, move || ready(&listed)));
        Ok((store, Some(cluster), following))
    }
}

fn ready(listed: &Condition) {
    listed.set(true);
    tracing::info!("ready: all Instrumentations and namespaces are known");
}

fn self_signed() -> Result<ServingCertificate, Failure> {
    tracing::warn!("serving a throw-away certificate: no API server will trust it");
    SelfSigned::generate(&DEFAULT_NAMES).map_err(Failure::failed)?.serving().map_err(Failure::failed)
}

fn no_cluster(error: &kube::Error) -> Failure {
    Failure::failed(format!(
        "no cluster to watch: {error}; --source DIR reads Instrumentations from files instead"
    ))
}
