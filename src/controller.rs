//! `otel-webhook controller`: reports pods with missing or outdated agents.

use std::{fmt::Display, net::SocketAddr, process::ExitCode, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use clap::{ArgAction, Args};
use kube::{Client, Config};
use tokio::sync::watch;

use super::{
    flags::{InjectionFlags, LogFlags, TeamFlags},
    heard::HeardFlags,
    names::{dns_name, label},
    output::Failure,
    pace::PaceFlags,
    parts::{self, Parts},
    serve::ADMIN_CONNECTIONS,
};
use otel_webhook_controller::{Controller, Election, RestartSettings};
use otel_webhook_fleet::report::ClusterReport;
use otel_webhook_inject::{cluster::Version, reason::ObjectName};
use otel_webhook_server::{
    Condition, Health, Listening, ReadReport, Shutdown, TerminationSignals, Transport, admin_router,
    page_router,
};
use otel_webhook_store::{api_client::Connections, scope::Scope};
use otel_webhook_telemetry::{Logging, Metrics};

/// The maximum number of connections to the page's port, each of which may have a page in memory.
const PAGE_CONNECTIONS: usize = 16;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  # In a cluster
  otel-webhook controller --languages java,nodejs

  # On a workstation, with the permissions of the current context
  otel-webhook controller --lease-namespace otel-webhook --admin-listen 127.0.0.1:8080

The injection flags have to be those of the webhook: by them, the controller decides what a new pod would get.";

/// Flags of the controller.
#[derive(Debug, Args)]
// The last value wins, so that arguments can be appended to those of the chart.
#[command(args_override_self = true)]
#[expect(clippy::struct_excessive_bools, reason = "flags, each of which may be given or not")]
pub struct ControllerFlags {
    /// Listen address of health checks and metrics (HTTP)
    #[arg(
        long,
        env = "OTEL_WEBHOOK_ADMIN_LISTEN",
        default_value = "127.0.0.1:8080",
        value_name = "ADDRESS",
        help_heading = "Controller"
    )]
    admin_listen: SocketAddr,

    /// Listen address of the status page (HTTP), or "off". Everyone who reaches it sees the names of all namespaces
    /// with pods, and of all workloads that opt in
    #[arg(long, env = "OTEL_WEBHOOK_PAGE_LISTEN", value_name = "ADDRESS|off", default_value = "127.0.0.1:8081",
        value_parser = page_address, help_heading = "Controller")]
    page_listen: PageAddress,

    /// Name of the cluster on the status page
    #[arg(
        long,
        env = "OTEL_WEBHOOK_CLUSTER",
        value_name = "NAME",
        default_value = "this cluster",
        help_heading = "Controller"
    )]
    cluster: String,

    /// Namespaces whose pods and Instrumentations are watched; by default all. For a service account without
    /// permissions in all namespaces: `otel-webhook rbac --controller --namespaces`
    #[arg(long, env = "OTEL_WEBHOOK_NAMESPACES", value_name = "LIST", value_delimiter = ',', value_parser = label,
        help_heading = "Controller")]
    namespaces: Vec<String>,

    /// Name of the webhook configurations; may be repeated
    #[arg(
        long,
        env = "OTEL_WEBHOOK_WEBHOOK_CONFIGURATION",
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "otel-webhook",
        value_parser = dns_name,
        help_heading = "Controller"
    )]
    webhook_configuration: Vec<String>,

    /// Name of the Lease for leader election
    #[arg(long, env = "OTEL_WEBHOOK_LEASE", value_name = "NAME", default_value = "otel-webhook-controller",
        value_parser = dns_name, help_heading = "Controller")]
    lease: String,

    /// Namespace of the Lease; by default that of the pod, or of the context
    #[arg(long, env = "OTEL_WEBHOOK_LEASE_NAMESPACE", value_name = "NAMESPACE", value_parser = label,
        help_heading = "Controller")]
    lease_namespace: Option<String>,

    /// Restart workloads that consent by the annotation otel-webhook/restart and whose pods are stale or missed.
    /// Needs more permissions: `otel-webhook rbac --controller --restarts`
    #[arg(long, env = "OTEL_WEBHOOK_RESTARTS", help_heading = "Controller")]
    restarts: bool,

    /// Restart workloads also if the API server has no ValidatingAdmissionPolicies (Kubernetes 1.29): with the token of
    /// the controller, all fields of workloads can be changed. Otherwise the controller does not start there
    #[arg(
        long,
        env = "OTEL_WEBHOOK_RESTARTS_WITHOUT_POLICY",
        requires = "restarts",
        help_heading = "Controller"
    )]
    restarts_without_policy: bool,

    /// ConfigMap that remembers restarts, in the namespace of the Lease
    #[arg(long, env = "OTEL_WEBHOOK_RESTARTS_CONFIG_MAP", value_name = "NAME",
        default_value = "otel-webhook-restarts", value_parser = dns_name, help_heading = "Controller")]
    restarts_config_map: String,

    /// Service of the webhook's health and metrics, in the namespace of the Lease. Before each step of a restart, every
    /// replica behind it has to answer that it would inject the expected configuration. Without it, as for a webhook
    /// outside of the cluster, the first restart of each change shows it
    #[arg(long, env = "OTEL_WEBHOOK_WEBHOOK_SERVICE", value_name = "NAME", value_parser = dns_name,
        help_heading = "Controller")]
    webhook_service: Option<String>,

    /// Report annotations and labels that nothing reads, warnings of injected pods and selectors that match nothing: by
    /// Events, metrics, the status of Instrumentations and the status page
    #[arg(long, env = "OTEL_WEBHOOK_MISTAKES", value_name = "BOOL", default_value_t = true,
        action = ArgAction::Set, help_heading = "Controller")]
    mistakes: bool,

    /// Number of namespaces with their own metrics, those with the most pods; the others are summed. 0 is none
    #[arg(long, env = "OTEL_WEBHOOK_METRICS_NAMESPACES", value_name = "COUNT", default_value_t = 0,
        value_parser = clap::value_parser!(u16).range(..=1000), help_heading = "Controller")]
    metrics_namespaces: u16,

    /// Name workloads of other namespaces in the status of an Instrumentation; by default they are counted, since those who
    /// read the namespace of the Instrumentation may not read theirs
    #[arg(long, env = "OTEL_WEBHOOK_NAME_ALL_WORKLOADS", help_heading = "Controller")]
    name_all_workloads: bool,

    #[command(flatten)]
    team: TeamFlags,

    #[command(flatten)]
    log: LogFlags,

    #[command(flatten)]
    heard: HeardFlags,

    #[command(flatten)]
    pace: PaceFlags,

    #[command(flatten)]
    injection: InjectionFlags,
}

/// Where the status page is; none if it is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageAddress(Option<SocketAddr>);

fn page_address(text: &str) -> Result<PageAddress, String> {
    if text == "off" {
        return Ok(PageAddress(None));
    }
    let address =
        text.parse().map_err(|_| "expected an address with a port, such as 127.0.0.1:8081, or \"off\"")?;
    Ok(PageAddress(Some(address)))
}

/// Runs the controller until it receives a signal.
///
/// # Errors
/// If it cannot start.
pub fn run(flags: &ControllerFlags) -> Result<ExitCode, Failure> {
    let logging = flags.log.begin()?;
    // One, since the allocator gives back little of what one thread has allocated and another one frees.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    let ended = runtime.block_on(control(flags, &logging));
    runtime.shutdown_background();
    ended
}

async fn control(flags: &ControllerFlags, logging: &Logging) -> Result<ExitCode, Failure> {
    let mut signals = TerminationSignals::catch().map_err(Failure::failed)?;
    let unreachable = |error: &dyn Display| Failure::failed(format!("cannot connect to a cluster: {error}"));
    let config = Config::infer().await.map_err(|error| unreachable(&error))?;
    let connections = Connections::to(config).map_err(|error| unreachable(&error))?;
    let client = connections.client();
    if flags.restarts && !flags.restarts_without_policy {
        let version = client.apiserver_version().await.map_err(|error| unreachable(&error))?.git_version;
        restricted_by_policies(&version).map_err(Failure::failed)?;
    }
    let metrics = Arc::new(Metrics::new().with_log(logging.dropped.clone()));
    let (health, shutdown) = (Arc::new(Health::new()), Shutdown::new());
    let listed = health.condition("store", "Instrumentations and namespaces are not listed yet");
    let bind = |name, address, connections| {
        let listening = Listening::bind(name, address).map_err(Failure::failed)?;
        Ok::<_, Failure>(listening.with_metrics(Arc::clone(&metrics)).with_max_connections(connections))
    };
    let admin = bind("admin", flags.admin_listen, ADMIN_CONNECTIONS)?;
    let (mut background, mut ports) = (Parts::default(), Parts::default());
    let router = admin_router(Arc::clone(&health), Arc::clone(&metrics), None);
    let served = admin.serve(router, Transport::Plain, shutdown.phases(), Duration::ZERO);
    // It answers while all pods are counted, too.
    ports.spawn_thread("the admin port", served).map_err(Failure::failed)?;

    let report = Arc::new(ArcSwapOption::empty());
    let namespace = flags.namespace(&client);
    let leadership = ObjectName { namespace: namespace.as_str().into(), name: flags.lease.as_str().into() };
    if let PageAddress(Some(address)) = flags.page_listen {
        let page = bind("page", address, PAGE_CONNECTIONS)?;
        let router = page_router(read_report(Arc::clone(&report), &leadership, address.port()), address);
        let served = page.serve(router, Transport::Plain, shutdown.phases(), Duration::ZERO);
        // A page of many workloads takes a while.
        ports.spawn_thread("the page's port", served).map_err(Failure::failed)?;
    }

    let writer = flags.injection.writer(Some(&namespace)).with_heads().counted(Arc::clone(&metrics));
    let controller = Controller {
        client: client.clone(),
        settings: flags.injection.settings(),
        store: writer.store(),
        configurations: flags.webhook_configuration.clone(),
        lease: leadership.clone(),
        metrics: Arc::clone(&metrics),
        report: Arc::clone(&report),
        cluster: flags.cluster.clone(),
        restarts: flags.restarts(&client),
        heard: flags.heard.settings(&leadership),
        scope: Scope::of(&flags.namespaces),
        mistakes: flags.mistakes,
        metrics_namespaces: flags.metrics_namespaces.into(),
        names_all_workloads: flags.name_all_workloads,
        team_label: flags.team.team_label.clone(),
    };
    if controller.restarts.is_some() {
        metrics.restarts.begin();
    }
    let (ready, is_ready) = watch::channel(false);
    let on_ready = move || note_ready(&listed, &ready);
    // What it counts does not depend on the delivery.
    let sources = otel_webhook_store::watch::Sources {
        scope: controller.scope.clone(),
        nodes: false,
        lease: Some(leadership.clone()),
    };
    background.spawn("the store", otel_webhook_store::watch::follow(client, sources, writer, on_ready));
    let identity = std::env::var("HOSTNAME").unwrap_or_else(|_| "otel-webhook".to_owned());
    let identity = format!("{identity}-{}", std::process::id());
    let election = Election::new(&connections, leadership, identity).map_err(|error| unreachable(&error))?;
    let candidate =
        Candidate { controller, election, lease: flags.lease.clone(), health: Arc::clone(&health) };
    background.spawn("the controller", candidate.run(is_ready, shutdown.stopping()));

    let lost = parts::end(&mut signals, &mut background, &mut ports).await;
    health.shut_down();
    shutdown.stop();
    if lost.is_none() {
        // It gives the Lease up, so that another replica need not wait for its end.
        background.ended().await;
    }
    drop(background);
    ports.all_ended().await;
    match lost {
        Some(lost) => Err(Failure::failed(lost)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Returns the last report of a leader. Another replica says which one leads, and a leader without a report that it is
/// still counting.
fn read_report(report: Arc<ArcSwapOption<ClusterReport>>, lease: &ObjectName, port: u16) -> ReadReport {
    let ObjectName { namespace, name } = lease;
    let why = format!(
        "There is no report here: this replica of the controller does not lead, or has not counted all pods yet.\n\
         The pod that leads holds the Lease {name}; its name is followed by a number there:\n  \
         kubectl get lease --namespace {namespace} {name} --output jsonpath={{.spec.holderIdentity}}\n  \
         kubectl port-forward --namespace {namespace} pod/NAME {port}\n"
    );
    Arc::new(move || report.load_full().ok_or_else(|| why.clone()))
}

/// Checks whether an API server of this version can restrict what the controller changes of workloads.
///
/// # Errors
/// Why it cannot, and what to do.
fn restricted_by_policies(version: &str) -> Result<(), String> {
    if Version::parse(version).is_some_and(|version| version >= Version::new(1, 30)) {
        return Ok(());
    }
    Err(format!(
        "--restarts: Kubernetes {version} has no ValidatingAdmissionPolicies, which restrict the controller to two annotations \
         of workloads; upgrade to 1.30, or set --restarts-without-policy"
    ))
}

fn note_ready(listed: &Condition, ready: &watch::Sender<bool>) {
    listed.set(true);
    ready.send_replace(true);
}

impl ControllerFlags {
    fn restarts(&self, client: &Client) -> Option<RestartSettings> {
        self.restarts.then(|| RestartSettings {
            pace: self.pace.pace(),
            namespace: self.namespace(client),
            config_map: self.restarts_config_map.clone(),
            webhook_service: self.webhook_service.clone(),
        })
    }

    /// Returns the namespace of the Lease.
    fn namespace(&self, client: &Client) -> String {
        self.lease_namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned())
    }
}

/// A replica that leads whenever it holds the Lease.
struct Candidate {
    controller: Controller,
    election: Election,
    lease: String,
    health: Arc<Health>,
}

impl Candidate {
    /// Leads again and again, until the process is to stop. Then it gives the Lease up.
    async fn run(mut self, mut is_ready: watch::Receiver<bool>, mut stopping: watch::Receiver<bool>) {
        // Without a permission, or an API server that answers, it is never ready.
        let is_listed = tokio::select! {
            // An error means that the store has ended, and the process with it.
            ready = is_ready.wait_for(|ready| *ready) => ready.is_ok(),
            _ = stopping.wait_for(|stop| *stop) => false,
        };
        if !is_listed {
            return;
        }
        let (holding, holds) = watch::channel(false);
        let (lease, pulse) = (&self.lease, self.health.pulse());
        tokio::select! {
            // The election is first: after a pause of the process, it may be over before anything is written.
            biased;
            never = self.election.run(&holding, || pulse.beat()) => match never {},
            _ = stopping.wait_for(|stop| *stop) => {}
            () = lead(&self.controller, lease, holds, &self.health) => {}
        }
        self.election.release().await;
    }
}

/// Leads whenever this replica holds the Lease.
async fn lead(controller: &Controller, lease: &str, mut holds: watch::Receiver<bool>, health: &Health) {
    let fleet = &controller.metrics.fleet;
    fleet.set_leader(lease, false);
    while holds.wait_for(|holds| *holds).await.is_ok() {
        tracing::info!(lease, "leading");
        fleet.set_leader(lease, true);
        let pulse = health.pulse();
        tokio::select! {
            biased;
            _ = holds.wait_for(|holds| !*holds) => {}
            () = controller.lead(|| pulse.beat()) => {}
        }
        tracing::info!(lease, "not leading any longer");
        fleet.set_leader(lease, false);
        fleet.clear();
        controller.metrics.restarts.clear();
        controller.report.store(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_need_a_server_with_policies() {
        assert_eq!(restricted_by_policies("v1.30.0-gke.1"), Ok(()));
        for version in ["v1.29.15", "unknown"] {
            let problem = restricted_by_policies(version).expect_err(version);
            assert!(
                problem.contains(version) && problem.ends_with("set --restarts-without-policy"),
                "{problem}"
            );
        }
    }

    #[test]
    fn the_page_has_an_address_or_is_off() {
        assert_eq!(page_address("off"), Ok(PageAddress(None)));
        assert_eq!(page_address("[::]:80"), Ok(PageAddress(Some(SocketAddr::from(([0_u16; 8], 80))))));
        let problem = page_address("localhost").expect_err("no port");
        assert!(problem.contains("such as 127.0.0.1:8081, or \"off\""), "{problem}");
    }
}
