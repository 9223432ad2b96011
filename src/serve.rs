//! `otel-webhook serve`: the webhook server.

use std::{fmt::Display, net::SocketAddr, process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use kube::{Client, Config};

use super::{
    flags::{InjectionFlags, KUBERNETES, LogFlags},
    names::{dns_name, label},
    output::Failure,
    parts::{self, Parts},
    tls::{CertificateFlags, Surroundings},
};
use otel_webhook_inject::reason::ObjectName;
use otel_webhook_server::{
    BodyLimits, Condition, Health, Listening, Shutdown, TerminationSignals, Transport, admin_router,
    admission::Admission, raise_file_limit, tls, webhook_router_within,
};
use otel_webhook_store::{
    Store, api_client::Connections, cluster::ClusterLookup, dir::Follower, scope::Scope, watch,
};
use otel_webhook_telemetry::{Logging, Metrics};

/// The number of connections of the admin port. Its clients are the kubelet and Prometheus.
pub const ADMIN_CONNECTIONS: usize = 256;

const EXAMPLES: &str = "\
Examples:
  # In a cluster, with the certificate of a mounted Secret
  otel-webhook serve --tls-cert /certs/tls.crt --tls-key /certs/tls.key

  # In a cluster, with a self-managed certificate
  otel-webhook serve --tls-managed otel-webhook-tls --webhook-configuration otel-webhook

  # Without a cluster: Instrumentations from files, a temporary self-signed certificate
  otel-webhook serve --source examples --tls-self-signed --listen 127.0.0.1:9443";

/// Flags of the server.
#[derive(Debug, Args)]
// The last value wins, so that arguments can be appended to those of the chart.
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct ServeFlags {
    /// Listen address of the webhook (HTTPS)
    #[arg(
        long,
        env = "OTEL_WEBHOOK_LISTEN",
        default_value = "[::]:9443",
        value_name = "ADDRESS",
        help_heading = "Server"
    )]
    listen: SocketAddr,

    /// Listen address of health checks and metrics (HTTP)
    #[arg(
        long,
        env = "OTEL_WEBHOOK_ADMIN_LISTEN",
        default_value = "127.0.0.1:8080",
        value_name = "ADDRESS",
        help_heading = "Server"
    )]
    admin_listen: SocketAddr,

    /// Source of Instrumentations: "kubernetes", or a directory of YAML and JSON files
    #[arg(
        long,
        env = "OTEL_WEBHOOK_SOURCE",
        default_value = KUBERNETES,
        value_name = "kubernetes|DIR",
        help_heading = "Server"
    )]
    source: String,

    /// Namespace of the webhook, of its Service and of the Secret of --tls-managed: its annotation otel-webhook/paused
    /// pauses all injection; defaults to that of the service account, or of the kubeconfig's context
    #[arg(
        long,
        env = "OTEL_WEBHOOK_NAMESPACE",
        value_name = "NAMESPACE",
        value_parser = label,
        help_heading = "Server"
    )]
    namespace: Option<String>,

    /// Lease of the controller, in the same namespace: its annotation otel-webhook/paused pauses all injection, too.
    /// Needs the Role of `otel-webhook rbac --controller`
    #[arg(long, env = "OTEL_WEBHOOK_LEASE", value_name = "NAME", value_parser = dns_name, help_heading = "Server")]
    lease: Option<String>,

    /// Seconds to keep accepting connections after SIGTERM, while the endpoint is removed from the Service
    #[arg(
        long,
        env = "OTEL_WEBHOOK_SHUTDOWN_DELAY",
        default_value_t = 5,
        value_name = "SECONDS",
        help_heading = "Server"
    )]
    shutdown_delay: u64,

    /// Seconds to wait for requests in flight after that
    #[arg(
        long,
        env = "OTEL_WEBHOOK_SHUTDOWN_GRACE",
        default_value_t = 10,
        value_name = "SECONDS",
        help_heading = "Server"
    )]
    shutdown_grace: u64,

    #[command(flatten)]
    limits: LimitFlags,

    /// When a workload is applied, report in warnings what will be injected, not only what will not be
    #[arg(long, env = "OTEL_WEBHOOK_PREVIEW_WARNINGS", help_heading = "Server")]
    preview_warnings: bool,

    /// Warn that Instrumentations with spec.inject have no effect: the webhook is registered only for pods with
    /// their own annotation or label
    #[arg(long, env = "OTEL_WEBHOOK_ONLY_ANNOTATED_PODS", help_heading = "Server")]
    only_annotated_pods: bool,

    #[command(flatten)]
    log: LogFlags,

    #[command(flatten)]
    certificate: CertificateFlags,

    #[command(flatten)]
    injection: InjectionFlags,
}

/// State that the parts of a running server share.
struct Running {
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
}

/// Runs the server until it receives a signal.
///
/// # Errors
/// If the server cannot start.
pub fn run(flags: &ServeFlags) -> Result<ExitCode, Failure> {
    let logging = flags.log.begin()?;
    raise_file_limit();
    // Reviews take microseconds: a few threads suffice on nodes with many cores, too.
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    let ended = runtime.block_on(serve(flags, &logging));
    // Without waiting for the decision of a large review: the grace period is over.
    runtime.shutdown_background();
    ended
}

async fn serve(flags: &ServeFlags, logging: &Logging) -> Result<ExitCode, Failure> {
    flags.certificate.check()?;
    let bodies = flags.limits.bodies()?;
    let mut signals = TerminationSignals::catch().map_err(Failure::failed)?;
    let running = Running {
        health: Arc::new(Health::new()),
        metrics: Arc::new(Metrics::new().with_log(logging.dropped.clone())),
        shutdown: Shutdown::new(),
    };
    let (mut background, mut ports) = (Parts::default(), Parts::default());
    let client = flags.client().await?;
    let transport = running.transport(flags, client.clone(), &mut background).await?;
    let (store, cluster) = running.follow(flags, client, &mut background)?;
    let admission = Admission::new(store, flags.injection.settings(), cluster, Arc::clone(&running.metrics))
        .with_images(flags.injection.images())
        .with_preview_warnings(flags.preview_warnings)
        .with_only_annotated(flags.only_annotated_pods);
    let bind = |name, address| {
        let listening = Listening::bind(name, address).map_err(Failure::failed)?;
        Ok::<_, Failure>(listening.with_metrics(Arc::clone(&running.metrics)))
    };
    let webhook = bind("webhook", flags.listen)?;
    let admin = bind("admin", flags.admin_listen)?.with_max_connections(ADMIN_CONNECTIONS);
    let grace = Duration::from_secs(flags.shutdown_grace);
    let admission = Arc::new(admission);
    let router = webhook_router_within(Arc::clone(&admission), Arc::clone(&running.metrics), bodies);
    ports.spawn("the webhook port", webhook.serve(router, transport, running.shutdown.phases(), grace));
    let router = admin_router(Arc::clone(&running.health), Arc::clone(&running.metrics), Some(admission));
    let served = admin.serve(router, Transport::Plain, running.shutdown.phases(), grace);
    // The kubelet restarts the container if `/livez` does not answer, which must not depend on the load of reviews.
    ports.spawn_thread("the admin port", served).map_err(Failure::failed)?;

    let delay = Duration::from_secs(flags.shutdown_delay);
    let lost = parts::end(&mut signals, &mut background, &mut ports).await;
    running.shutdown.end(&mut signals, &running.health, delay).await;
    drop(background);
    let panicked = ports.all_ended().await;
    match lost.iter().chain(&panicked).next() {
        Some(lost) => Err(Failure::failed(lost)),
        None => Ok(ExitCode::SUCCESS),
    }
}

impl ServeFlags {
    /// Returns a client if the cluster is needed.
    async fn client(&self) -> Result<Option<Client>, Failure> {
        let is_needed = self.source == KUBERNETES || self.certificate.tls_managed.is_some();
        if !is_needed {
            return Ok(None);
        }
        let config = Config::infer().await.map_err(|error| self.no_cluster(&error))?;
        let connections = Connections::to(config).map_err(|error| self.no_cluster(&error))?;
        Ok(Some(connections.client()))
    }

    /// Returns the namespace of the webhook, if it is known.
    fn namespace(&self, client: Option<&Client>) -> Option<String> {
        self.namespace.clone().or_else(|| client.map(|client| client.default_namespace().to_owned()))
    }

    fn no_cluster(&self, error: &dyn Display) -> Failure {
        if self.source == KUBERNETES {
            return Failure::failed(format!(
                "cannot connect to a cluster: {error}; to read Instrumentations from files, use --source DIR"
            ));
        }
        Failure::failed(format!("--tls-managed: cannot connect to a cluster: {error}"))
    }
}

impl Running {
    /// Returns the TLS configuration of the port. A background task manages the certificate.
    async fn transport(
        &self,
        flags: &ServeFlags,
        client: Option<Client>,
        background: &mut Parts,
    ) -> Result<Transport, Failure> {
        let metrics = Arc::clone(&self.metrics);
        let trusted = self.health.condition(
            "certificate",
            "caBundle of the webhook configurations does not verify the managed certificate yet; see the log for the reason",
        );
        let around = Surroundings { metrics: Arc::clone(&metrics), stopping: self.shutdown.stopping() };
        let is_managed = flags.certificate.tls_managed.is_some();
        let on_ready = move || {
            trusted.set(true);
            if is_managed {
                tracing::info!("ready: caBundle of the webhook configurations verifies the certificate");
            }
        };
        let certificate =
            flags.certificate.start(client, flags.namespace.as_deref(), around, on_ready).await?;
        background.spawn("the management of the certificate", certificate.upkeep);
        let clients = &flags.certificate.clients;
        let config = match clients.start(Arc::clone(&metrics), self.shutdown.stopping()).await? {
            None => tls::server_config(certificate.current),
            Some(clients) => {
                background.spawn("the reloading of the client CA", clients.upkeep);
                tls::mutual_config(certificate.current, clients.current)
            }
        }
        .map_err(Failure::failed)?;
        Ok(Transport::Tls { config: Arc::new(config), metrics })
    }

    /// Returns the store. A background task updates it from the source.
    fn follow(
        &self,
        flags: &ServeFlags,
        client: Option<Client>,
        background: &mut Parts,
    ) -> Result<(Store, Option<ClusterLookup>), Failure> {
        let namespace = flags.namespace(client.as_ref());
        let writer = flags.injection.writer(namespace.as_deref());
        let writer = writer.counted(Arc::clone(&self.metrics));
        let store = writer.store();
        let listed = self.health.condition(
            "store",
            "Instrumentations, namespaces, LimitRanges, ResourceQuotas and ServiceAccounts are not listed yet",
        );
        let Some(client) = client.filter(|_| flags.source == KUBERNETES) else {
            let follower = Follower::start(flags.source.clone().into(), writer).map_err(Failure::failed)?;
            ready(&listed);
            background.spawn("the store", follower.run());
            return Ok((store, None));
        };
        let cluster = ClusterLookup::new(client.clone());
        let lease = namespace.zip(flags.lease.as_ref());
        let sources = watch::Sources {
            scope: Scope::Cluster,
            nodes: flags.injection.watches_nodes(),
            lease: lease.map(|(namespace, name)| ObjectName {
                namespace: namespace.into(),
                name: name.as_str().into(),
            }),
        };
        background.spawn("the store", watch::follow(client, sources, writer, move || ready(&listed)));
        Ok((store, Some(cluster)))
    }
}

fn ready(listed: &Condition) {
    listed.set(true);
    tracing::info!(
        "ready: all Instrumentations, namespaces, LimitRanges, ResourceQuotas and ServiceAccounts are known"
    );
}

/// Flags of limits.
#[derive(Debug, Args)]
pub struct LimitFlags {
    /// MiB of memory for the bodies of all requests together; those that find none in time are not injected
    #[arg(
        long,
        env = "OTEL_WEBHOOK_MAX_REVIEW_MEMORY",
        default_value_t = BodyLimits::default().together,
        value_name = "MIB",
        value_parser = clap::value_parser!(u32).range(1..=65_536),
        help_heading = "Server"
    )]
    max_review_memory: u32,

    /// MiB of the largest body of a request; the status for a larger one is 413
    #[arg(
        long,
        env = "OTEL_WEBHOOK_MAX_REVIEW_SIZE",
        default_value_t = BodyLimits::default().each,
        value_name = "MIB",
        value_parser = clap::value_parser!(u32).range(1..=1024),
        help_heading = "Server"
    )]
    max_review_size: u32,
}

impl LimitFlags {
    /// Returns the bounds of bodies.
    ///
    /// # Errors
    /// If the largest body could never find the memory.
    pub fn bodies(&self) -> Result<BodyLimits, Failure> {
        let limits = BodyLimits { each: self.max_review_size, together: self.max_review_memory };
        if limits.together < limits.each {
            return Err(Failure::unreadable(format!(
                "--max-review-memory is {} and has to be at least {}, the value of --max-review-size",
                limits.together, limits.each
            )));
        }
        Ok(limits)
    }
}
