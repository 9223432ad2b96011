//! The controller: what runs in the cluster, compared with what new pods would get, and written to the cluster.
//!
//! ```text
//! watches ──> pods (census), the store of the webhook with what else the controller uses
//!                └── once a second, if something has changed ──> report
//!                       ├──> status of Instrumentations
//!                       ├──> Events on workloads
//!                       ├──> metrics
//!                       └──> restarts, where they are enabled
//! ```
//!
//! One replica leads, by a Lease; the others keep the store and wait. All state is in the cluster or found again by
//! the next leader. What is counted, and why, is in the crate `fleet`. See docs/adr/0012-controller.md.

mod conversion;
mod election;
mod events;
mod heard;
mod interest;
mod mistakes;
mod pods;
mod raw;
mod reads;
mod restarts;
mod selection;
mod status;
mod statuses;
mod turns;
mod unwatched;
mod watches;
mod workloads;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval};

use conversion::Conversion;
use events::Events;
use heard::Listening;
use mistakes::{Mistaken, Mistakes};
use otel_webhook_fleet::{
    count::{Changed, Counted, Counter, Known},
    coverage::coverage,
    mistakes::{MOST, bound},
    next::Around,
    report::{ClusterReport, Report},
};
use otel_webhook_inject::{Settings, reason::ObjectName};
use otel_webhook_store::{Snapshot, Store, scope::Scope};
use otel_webhook_telemetry::Metrics;
use pods::Pods;
use restarts::Restarts;
use selection::Selection;
use statuses::Statuses;
use unwatched::Unwatched;

pub use election::Election;
pub use heard::{Asked, HeardSettings, QUERY};
pub use restarts::RestartSettings;

/// How long changes are collected before pods are counted again. Counting 50,000 takes a tenth of it.
const PERIOD: Duration = Duration::from_secs(1);

/// The same while some are not read yet.
const PERIOD_OF_UNREAD: Duration = Duration::from_secs(5);

/// How long a new leader reads pods before it tells of them although some are unread. Else it would tell of pods
/// that are not confirmed, and take that back a moment later.
const FIRST_PASS: Duration = Duration::from_secs(60);

/// What the controller needs.
pub struct Controller {
    /// The client.
    pub client: Client,
    /// The settings of the webhook.
    pub settings: Settings,
    /// The webhook's store, which something else keeps up to date.
    pub store: Store,
    /// Names of the webhook configurations.
    pub configurations: Vec<String>,
    /// Its Lease, which stands for the controller in Events.
    pub lease: ObjectName,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The last report, for others to read; none while another replica leads.
    pub report: Arc<ArcSwapOption<ClusterReport>>,
    /// The name of the cluster in reports.
    pub cluster: String,
    /// How workloads are restarted; none if they are not.
    pub restarts: Option<RestartSettings>,
    /// Where it is asked what arrives; none if that is not known.
    pub heard: Option<HeardSettings>,
    /// The namespaces that are watched.
    pub scope: Scope,
    /// Whether mistakes in workloads, namespaces and pods are reported.
    pub mistakes: bool,
    /// How many namespaces have their own metrics.
    pub metrics_namespaces: usize,
    /// Whether the status of an Instrumentation names workloads of other namespaces.
    pub names_all_workloads: bool,
    /// The label of namespaces that names the team of each, if there is one.
    pub team_label: Option<String>,
}

/// Returns the rules of a role for the controller, in addition to those of the store.
pub fn rules() -> Vec<Value> {
    let read = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    vec![
        read("", &["pods"], &["get", "list", "watch"]),
        read("admissionregistration.k8s.io", &["mutatingwebhookconfigurations"], &["get"]),
        // One of them, to find out whether the API server can convert it.
        read("opentelemetry.io", &["instrumentations"], &["get"]),
        read("opentelemetry.io", &["instrumentations/status"], &["patch"]),
        read("apps", &["deployments", "statefulsets", "daemonsets"], &["get"]),
        read("events.k8s.io", &["events"], &["create"]),
    ]
}

/// Returns the rules of a role for mistakes in workloads, in addition to [`rules`].
pub fn mistake_rules() -> [Value; 3] {
    [
        json!({"apiGroups": ["apps"], "resources": ["deployments", "statefulsets", "daemonsets"], "verbs": ["list", "watch"]}),
        json!({"apiGroups": ["batch"], "resources": ["cronjobs"], "verbs": ["get", "list", "watch"]}),
        json!({"apiGroups": ["argoproj.io"], "resources": ["rollouts"], "verbs": ["get", "list", "watch"]}),
    ]
}

/// Returns the rules of a Role in the namespace of the Lease. The name `LEASE` is a placeholder.
pub fn lease_rules() -> [Value; 2] {
    let rule = |verbs: &[&str]| json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs});
    let mut named = rule(&["get", "patch"]);
    named["resourceNames"] = json!(["LEASE"]);
    // A request that creates an object has no name by which it could be restricted.
    [rule(&["create"]), named]
}

/// Returns the rules of a role for restarts, in addition to [`rules`].
pub fn restart_rules() -> [Value; 2] {
    let workloads = ["deployments", "statefulsets", "daemonsets"];
    [
        json!({"apiGroups": ["apps"], "resources": workloads, "verbs": ["get", "list", "watch", "patch"]}),
        json!({"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}),
    ]
}

/// Returns the rules of a Role for restarts: for their ConfigMap, and to find the replicas of the webhook. The name
/// `CONFIGMAP` is a placeholder.
pub fn restart_namespace_rules() -> [Value; 3] {
    let rule = |verbs: &[&str]| json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs});
    let mut named = rule(&["get", "update"]);
    named["resourceNames"] = json!(["CONFIGMAP"]);
    let replicas =
        json!({"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list"]});
    // A request that creates an object has no name by which it could be restricted.
    [rule(&["create"]), named, replicas]
}

impl Controller {
    /// Counts and tells, until it is dropped. To be called when this replica leads, and the store is listed. Calls
    /// `beat` again and again while it makes progress.
    pub async fn lead(&self, beat: impl Fn()) {
        let mut leading = Leading::of(self);
        let mut tick = interval(PERIOD);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beat();
            let snapshot = self.store.snapshot();
            let around = self.around(&snapshot);
            let is_counted = leading.is_counted();
            tokio::select! {
                is_changed = leading.pods.step(&around) => leading.is_dirty |= is_changed,
                () = workloads(&mut leading.restarts) => {}
                is_changed = mistakes(&mut leading.mistakes, &snapshot, &self.settings), if is_counted => {
                    leading.are_mistakes_dirty |= is_changed;
                }
                _ = tick.tick() => leading.tell(self, &snapshot).await,
            }
        }
    }

    fn around<'s>(&'s self, snapshot: &'s Snapshot) -> Around<'s> {
        Around { catalogue: &snapshot.catalogue, settings: &self.settings }
    }
}

/// Follows the workloads, if they are restarted.
async fn workloads(restarts: &mut Option<Restarts>) {
    match restarts {
        Some(restarts) => restarts.watch().await,
        None => std::future::pending().await,
    }
}

/// Follows the metadata of workloads, if mistakes are reported.
async fn mistakes(mistakes: &mut Option<Mistakes>, snapshot: &Snapshot, settings: &Settings) -> bool {
    match mistakes {
        Some(mistakes) => mistakes.step(snapshot, settings).await,
        None => std::future::pending().await,
    }
}

/// What the leader knows.
struct Leading {
    pods: Pods,
    selection: Selection,
    conversion: Option<Conversion>,
    statuses: Statuses,
    events: Events,
    restarts: Option<Restarts>,
    listening: Option<Listening>,
    mistakes: Option<Mistakes>,
    /// Whether mistakes have changed since they were reported.
    are_mistakes_dirty: bool,
    counter: Counter,
    /// What was counted last, but for the report, which others read.
    counted: Counted,
    /// What it was counted with; none if all pods have to be counted anew.
    counted_with: Option<Arc<Snapshot>>,
    snapshot: Arc<Snapshot>,
    is_dirty: bool,
    /// Whether pods were counted since restarts were planned.
    is_replanned: bool,
    last_count: Instant,
    /// Until when the first pass may take; none once it is over.
    first_pass: Option<Instant>,
}

impl Leading {
    fn of(controller: &Controller) -> Self {
        let Controller { client, scope, .. } = controller;
        Self {
            pods: Pods::watch(client, scope).with_mistakes(controller.mistakes),
            selection: Selection::new(client.clone(), controller.configurations.clone()),
            // One check covers all namespaces, which a controller of some may not read.
            conversion: (*scope == Scope::Cluster).then(|| Conversion::new(client.clone())),
            statuses: Statuses::new(client.clone(), controller.mistakes, controller.names_all_workloads),
            events: Events::new(client.clone()),
            restarts: controller.restarts.as_ref().map(|settings| Restarts::new(client, scope, settings)),
            listening: controller.heard.as_ref().map(Listening::begin),
            mistakes: controller.mistakes.then(|| Mistakes::watch(client, scope)),
            are_mistakes_dirty: false,
            counter: Counter::new(controller.restarts.is_some()),
            counted: Counted::default(),
            counted_with: None,
            snapshot: Arc::default(),
            is_dirty: true,
            is_replanned: true,
            last_count: Instant::now(),
            first_pass: Some(Instant::now() + FIRST_PASS),
        }
    }

    /// Whether all pods were counted once, or mistakes no longer wait for that.
    fn is_counted(&self) -> bool {
        self.first_pass.is_none_or(|until| Instant::now() + FIRST_PASS / 2 >= until)
    }

    /// Counts if something has changed, and writes what is due.
    async fn tell(&mut self, controller: &Controller, snapshot: &Arc<Snapshot>) {
        if !Arc::ptr_eq(&self.snapshot, snapshot) {
            self.pods.follow_namespaces(&controller.around(snapshot));
            if let Some(mistakes) = &mut self.mistakes {
                mistakes.follow_opt_ins(snapshot, &controller.settings);
            }
            self.snapshot = Arc::clone(snapshot);
            self.is_dirty = true;
        }
        if self.selection.refresh().await {
            (self.is_dirty, self.counted_with) = (true, None);
        }
        if let Some(conversion) = &mut self.conversion
            && let Some(problem) = conversion.refresh().await
        {
            self.events.tell_of_conversion(&controller.lease, &problem);
        }
        // A list in progress would show pods as gone that are on one of its later pages.
        if !self.pods.is_listed() {
            return;
        }
        self.listen(controller);
        if let (Some(mistakes), Some(pods)) = (&mut self.mistakes, self.pods.mistakes()) {
            self.are_mistakes_dirty |= mistakes.follow_pods(pods);
        }
        self.is_dirty |= std::mem::take(&mut self.are_mistakes_dirty);
        let are_all_read = self.pods.are_all_read();
        self.first_pass = self.first_pass.filter(|until| !are_all_read && Instant::now() < *until);
        if self.first_pass.is_some() {
            return;
        }
        let has_found_failing = self.pods.has_found_failing();
        let is_due = are_all_read || has_found_failing || self.last_count.elapsed() >= PERIOD_OF_UNREAD;
        if self.is_dirty && is_due {
            (self.is_dirty, self.last_count, self.is_replanned) = (false, Instant::now(), true);
            self.count(controller, snapshot);
            self.pods.follow_suspects(&self.counted);
            let mut report = std::mem::take(&mut self.counted.report);
            let team = |namespace: &str| {
                snapshot.heads.labels(namespace).get(controller.team_label.as_ref()?).cloned()
            };
            report.coverage = coverage(self.pods.census(), &report.workloads, team);
            let mistaken = self.find_mistakes(snapshot, &mut report);
            controller.metrics.fleet.set(&report);
            if controller.metrics_namespaces > 0 {
                controller.metrics.fleet.set_namespaces(&report, controller.metrics_namespaces);
            }
            if controller.mistakes {
                let codes = mistaken.iter().flat_map(|one| one.findings.iter().map(|finding| finding.code));
                controller.metrics.fleet.set_mistakes(codes);
            }
            if let Some(restarts) = &self.restarts {
                restarts.tell(&mut report);
            }
            let none = HashMap::new();
            let restarts = self.restarts.as_ref().map_or(Some(&none), Restarts::progress);
            self.statuses.take(&report, snapshot, restarts);
            self.events.take(&report);
            self.events.take_mistakes(&mistaken);
            self.events.take_unused(snapshot);
            controller.report.store(Some(Arc::new(self.clustered(controller, report))));
        }
        // Restarts are planned by the present counts only.
        let is_due = self.restarts.as_ref().is_some_and(|restarts| self.is_replanned || restarts.is_due());
        if !self.is_dirty && is_due {
            self.is_replanned = false;
            self.restart(controller, snapshot).await;
        }
        self.statuses.write().await;
        self.events.send().await;
    }

    /// Adds mistakes to a report. Returns them by their objects.
    fn find_mistakes(&mut self, snapshot: &Snapshot, report: &mut Report) -> Vec<Mistaken> {
        let (Some(mistakes), Some(pods)) = (&self.mistakes, self.pods.mistakes()) else { return Vec::new() };
        let all = mistakes.all(pods, snapshot, report);
        report.mistakes = mistakes::rows(&all);
        report.more_mistakes = bound(&mut report.mistakes, MOST);
        all
    }

    /// Takes what has arrived of the telemetry of pods.
    fn listen(&mut self, controller: &Controller) {
        let (Some(listening), Some(settings)) = (&mut self.listening, &controller.heard) else { return };
        let Some((is_changed, problem)) = listening.take(self.pods.census()) else { return };
        self.is_dirty |= is_changed;
        controller.metrics.fleet.set_source(settings.asked.name(), listening.problem.is_none());
        if let Some(problem) = problem {
            self.events.tell_of_source(&settings.lease, &problem);
        }
    }

    /// Restarts what is due, by the pods as they were just counted.
    async fn restart(&mut self, controller: &Controller, snapshot: &Snapshot) {
        let Some(restarts) = &mut self.restarts else { return };
        let metrics = &controller.metrics.restarts;
        self.is_dirty |= restarts.step(&self.counted.pods, &snapshot.heads, metrics).await;
        self.events.tell(restarts.news());
    }

    fn clustered(&self, controller: &Controller, report: Report) -> ClusterReport {
        let unread = (!self.pods.are_all_read()).then(|| "not all pods are read yet".to_owned());
        let problem = self.restarts.as_ref().and_then(Restarts::problem);
        let source = self.listening.as_ref().and_then(|listening| listening.problem.as_ref());
        let source = source.map(|why| format!("whether data arrives is not known: {why}"));
        ClusterReport {
            cluster: controller.cluster.clone(),
            taken: Timestamp::now(),
            incomplete: unread.into_iter().chain(problem).chain(source).collect(),
            report,
        }
    }

    /// Counts the pods of workloads that have changed, and of those in namespaces that have.
    fn count(&mut self, controller: &Controller, snapshot: &Arc<Snapshot>) {
        let created = snapshot.heads.instrumentations.iter();
        let created: HashMap<String, Timestamp> =
            created.filter_map(|(name, head)| Some((name.to_string(), head.created?))).collect();
        let is_selected = |namespace: &str, labels: &BTreeMap<String, String>, asks_itself: bool| {
            self.selection.selects(snapshot.heads.labels(namespace), labels, asks_itself)
        };
        let around = controller.around(snapshot);
        let heard = self.listening.as_ref().map(|listening| &listening.heard);
        let known = Known { around, created: &created, is_selected: &is_selected, heard };
        let unwatched = Unwatched::of(&controller.scope, &controller.settings);
        let told = controller.report.load_full();
        let last = self.counted_with.replace(Arc::clone(snapshot)).zip(told);
        let changed =
            last.as_ref().map_or(Changed::Everything, |(last, _)| changed(last, snapshot, controller));
        let mut counted = std::mem::take(&mut self.counted);
        let census = self.pods.census();
        if let (Changed::Namespaces(_), Some((_, told))) = (&changed, &last) {
            counted.report = told.report.clone();
            // Restarts have taken their commands back.
            let stopped = counted.report.workloads.iter().filter(|row| row.is_stopped());
            stopped.for_each(|row| census.touch(&row.workload));
        }
        let (counted, workloads) = self.counter.count(census, &known, &unwatched, &changed, counted);
        tracing::debug!(workloads, "counted the pods of workloads that may have changed");
        self.counted = counted;
    }
}

/// Returns what has changed since a snapshot.
fn changed<'s>(before: &'s Snapshot, now: &'s Snapshot, controller: &Controller) -> Changed<'s> {
    let (was, is) = (&before.catalogue, &now.catalogue);
    let has_changed = |name: &str| {
        let [(own, head), (known, known_head)] =
            [before, now].map(|one| (one.catalogue.namespaces.get(name), one.heads.namespaces.get(name)));
        own.map(Arc::as_ptr) != known.map(Arc::as_ptr) || head.map(Arc::as_ptr) != known_head.map(Arc::as_ptr)
    };
    let names = [before, now].into_iter();
    let names = names.flat_map(|one| one.catalogue.namespaces.keys().chain(one.heads.namespaces.keys()));
    let changed: HashSet<&str> = names.map(|name| &**name).filter(|name| has_changed(name)).collect();
    let default = controller.settings.default_instrumentation.as_ref().map(|default| &*default.namespace);
    let of_all = [default, is.release.as_deref()];
    let is_of_all = of_all.into_iter().flatten().any(|name| changed.contains(name))
        || (&was.release, &was.paused_lease) != (&is.release, &is.paused_lease)
        || was.cluster.as_ref().map(Arc::as_ptr) != is.cluster.as_ref().map(Arc::as_ptr);
    if is_of_all { Changed::Everything } else { Changed::Namespaces(changed) }
}
