//! Restarts of workloads that consent: carries out what the crate `fleet` plans.
//!
//! ```text
//! watches of workloads + counted pods ──> seen ──> plan ──> ledger written ──> patches and evictions
//!                                                   └─ replicas of the webhook asked
//! ```
//!
//! A step is taken only after the ledger that contains it is stored. A new leader finds in the ledger and in the
//! records of workloads what was done; see docs/adr/0013-restarts.md.

mod health;
mod memory;
mod steps;
mod webhook;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use jiff::Timestamp;
use kube::Client;
use tokio::time::Instant;

use super::workloads::Workloads;
use health::Healths;
use memory::Memory;
use otel_webhook_fleet::{
    advice::Outside,
    count::WorkloadPods,
    report::{Report, RestartRow},
    restart::{
        Around, Consent, Health, Instrumentation, Ledger, Left, Observed, ObservedWorkload, Pace, Plan,
        Progress, Step, Verdict, plan,
    },
    workload::Workload,
};
use otel_webhook_inject::reason::ObjectName;
use otel_webhook_store::{Heads, api_client::RequestBackoff, scope::Scope};
use otel_webhook_telemetry::{RestartMetrics, RestartResult};
use steps::Taken;
use webhook::Replicas;

/// How long nothing is planned as long as nothing changes.
const IDLE: Duration = Duration::from_secs(60);

/// How workloads are restarted.
#[derive(Clone)]
pub struct RestartSettings {
    /// How fast.
    pub pace: Pace,
    /// The namespace of the ConfigMap that remembers restarts.
    pub namespace: String,
    /// Its name.
    pub config_map: String,
    /// The Service of the operations ports of the webhook, in the same namespace; none if it is not known.
    pub webhook_service: Option<String>,
}

/// The restarts of a leader.
pub struct Restarts {
    client: Client,
    pace: Pace,
    workloads: Workloads,
    memory: Memory,
    replicas: Replicas,
    /// When a plan may be carried out again, after the API server did not answer.
    backoff: RequestBackoff,
    healths: Healths,
    /// Why the last step for a workload was refused.
    refused: HashMap<Workload, String>,
    /// What the last plan says of workloads that are not up to date.
    verdicts: BTreeMap<Workload, Verdict>,
    /// How far the restarts of each Instrumentation are, by its UID; none before the first plan.
    progress: Option<HashMap<String, Progress>>,
    /// When to plan again although no pod and no Instrumentation has changed.
    due: Instant,
    news: Vec<News>,
}

/// Something that an Event tells.
pub struct News {
    /// The workload.
    pub workload: Workload,
    /// The reason of the Event.
    pub reason: &'static str,
    /// Its note.
    pub note: String,
}

impl Restarts {
    /// Begins to watch workloads.
    pub fn new(client: &Client, scope: &Scope, settings: &RestartSettings) -> Self {
        Self {
            client: client.clone(),
            pace: settings.pace.clone(),
            workloads: Workloads::watch(client, scope),
            memory: Memory::new(client.clone(), &settings.namespace, &settings.config_map),
            replicas: Replicas::of(client, &settings.namespace, settings.webhook_service.as_deref()),
            backoff: RequestBackoff::default(),
            healths: Healths::new(client.clone()),
            refused: HashMap::new(),
            verdicts: BTreeMap::new(),
            progress: None,
            due: Instant::now(),
            news: Vec::new(),
        }
    }

    /// Waits for news of workloads.
    pub async fn watch(&mut self) {
        if self.workloads.step().await {
            self.due = Instant::now();
        }
    }

    /// Returns whether to plan again although no pod and no Instrumentation has changed.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// Writes what the last plan says into a report.
    pub fn tell(&self, report: &mut Report) {
        for row in &mut report.workloads {
            row.restart = self.verdicts.get(&row.workload).map(RestartRow::from);
        }
        report.withhold(&Outside::default());
    }

    /// Returns how far the restarts of each Instrumentation are, by its UID; none before they are planned.
    pub fn progress(&self) -> Option<&HashMap<String, Progress>> {
        self.progress.as_ref()
    }

    /// Returns why nothing is planned, if that is so.
    pub fn problem(&self) -> Option<String> {
        let unlisted = || "workloads are not listed yet, so nothing is restarted".to_owned();
        let unread = self.memory.problem().map(str::to_owned);
        unread.or_else(|| (!self.workloads.are_listed()).then(unlisted))
    }

    /// Returns what Events are to tell.
    pub fn news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Plans, and takes the steps. Returns whether something changed that is told.
    pub async fn step(&mut self, pods: &[WorkloadPods], heads: &Heads, metrics: &RestartMetrics) -> bool {
        if !self.workloads.are_listed() || !self.backoff.is_over() {
            return false;
        }
        let Some(ledger) = self.memory.ledger().await.cloned() else {
            return self.note_unrecorded(metrics);
        };
        let now = Timestamp::now();
        let workloads = self.see(pods, &ledger, heads, now).await;
        let known = reduced(heads);
        let planned = loop {
            let webhook = self.replicas.known();
            let observed = Observed { now, instrumentations: &known, workloads: &workloads, webhook };
            let planned = plan(observed, &self.pace, &ledger);
            if self.replicas.agree(&planned, pods).await {
                break planned;
            }
        };
        let is_changed = self.note(&planned, &workloads, &known);
        let are_stopped = planned.ledger.waves.values().filter(|wave| wave.stops().next().is_some());
        metrics.set_stopped(are_stopped.count());
        let is_same = planned.ledger.flights == ledger.flights && planned.ledger.waves == ledger.waves;
        if is_same && planned.steps.is_empty() {
            return is_changed;
        }
        if self.memory.write(planned.ledger.clone()).await {
            self.compare(&ledger, &planned, metrics);
            for step in planned.steps {
                self.take(step, metrics).await;
            }
            return is_changed;
        }
        self.due = Instant::now();
        if self.memory.problem().is_some() {
            return self.note_unrecorded(metrics);
        }
        is_changed
    }

    /// Puts together what is known of each workload that has pods or is being restarted.
    async fn see(
        &mut self,
        pods: &[WorkloadPods],
        ledger: &Ledger,
        heads: &Heads,
        now: Timestamp,
    ) -> Vec<ObservedWorkload> {
        let restarted = ledger.flights.iter().map(|flight| &flight.workload);
        let restarted: Vec<_> =
            restarted.filter_map(|workload| Some((workload, self.workloads.get(workload)?))).collect();
        let waits = |pods: &&WorkloadPods| {
            let is_flying = || restarted.iter().any(|(workload, _)| **workload == pods.workload);
            pods.workload.kind == "DaemonSet"
                && matches!(
                    self.verdicts.get(&pods.workload),
                    Some(Verdict::Waits(_) | Verdict::Left(Left::Failing(_)))
                )
                && !is_flying()
        };
        // A node that is not ready keeps its pods, which are no rollout to wait for.
        let waiting = pods.iter().filter(waits).map(|pods| &pods.workload);
        let waiting: Vec<_> =
            waiting.filter_map(|workload| Some((workload, self.workloads.get(workload)?))).collect();
        self.healths.follow(&restarted, &waiting, now).await;
        let counted: HashSet<_> = pods.iter().map(|pods| &pods.workload).collect();
        // A workload whose only pod is being replaced has none for a moment.
        let empty = restarted.iter().filter(|(workload, _)| !counted.contains(workload));
        let empty = empty.map(|(workload, _)| ObservedWorkload::without_pods((*workload).clone()));
        let one = |pods: WorkloadPods| {
            let namespace = pods.workload.namespace.clone();
            let head = pods.instrumentation.as_ref().and_then(|name| {
                let (of, name) = name.split_once('/')?;
                let head =
                    heads.instrumentations.get(&ObjectName { namespace: of.into(), name: name.into() })?;
                Some((&*head.uid, head.consent.as_deref().filter(|_| of == namespace)))
            });
            let consent = heads.namespaces.get(&*namespace).and_then(|known| known.consent.as_deref());
            let around = Around { namespace: consent, instrumentation: head };
            let rollout = self.workloads.get(&pods.workload);
            let health =
                rollout.map_or(Health::Healthy, |rollout| self.healths.of(&pods.workload, rollout, now));
            let refused = self.refused.get(&pods.workload).cloned();
            ObservedWorkload::of(pods, rollout, around, health, refused)
        };
        pods.iter().cloned().chain(empty).map(one).collect()
    }

    /// Keeps what is told of a plan. Returns whether it is something new.
    fn note(&mut self, planned: &Plan, workloads: &[ObservedWorkload], known: &[Instrumentation]) -> bool {
        let verdicts = workloads.iter().zip(&planned.verdicts);
        let verdicts = verdicts.filter(|(_, verdict)| **verdict != Verdict::UpToDate);
        let verdicts: BTreeMap<_, _> =
            verdicts.map(|(seen, verdict)| (seen.workload.clone(), verdict.clone())).collect();
        let progress = known.iter().filter_map(|one| {
            let progress = planned.progress(workloads, &one.uid)?;
            Some((one.uid.clone(), progress))
        });
        let progress: Option<HashMap<_, _>> = Some(progress.collect());
        let is_changed = verdicts != self.verdicts || progress != self.progress;
        self.due = Instant::now() + if planned.may_change() { Duration::ZERO } else { IDLE };
        (self.verdicts, self.progress) = (verdicts, progress);
        let restarted: HashSet<_> = planned.ledger.flights.iter().map(|flight| &flight.workload).collect();
        self.refused.retain(|workload, _| restarted.contains(workload));
        is_changed
    }

    /// Notes that nothing is restarted, since it could not be remembered. Returns whether that is new.
    fn note_unrecorded(&mut self, metrics: &RestartMetrics) -> bool {
        if self.memory.has_failed() {
            metrics.count(RestartResult::Unrecorded);
        }
        let Some(problem) = self.memory.problem() else { return false };
        let obstacle = Some(("LedgerUnavailable", problem.to_owned()));
        let mut is_new = false;
        for progress in self.progress.iter_mut().flat_map(HashMap::values_mut) {
            is_new |= progress.obstacle != obstacle;
            progress.obstacle.clone_from(&obstacle);
        }
        is_new
    }

    /// Reports which restarts have begun, ended or stopped.
    fn compare(&mut self, before: &Ledger, planned: &Plan, metrics: &RestartMetrics) {
        for flight in &planned.ledger.flights {
            let is_new = !before.flights.iter().any(|known| known.workload == flight.workload);
            if is_new && flight.method == Consent::Evict {
                metrics.count(RestartResult::Begun);
            }
        }
        for flight in &planned.done {
            metrics.count(RestartResult::Done);
            let note =
                format!("its pods were replaced and have stayed healthy, for {}", flight.change.config);
            self.news.push(News { workload: flight.workload.clone(), reason: "Restarted", note });
        }
        for (uid, wave) in &planned.ledger.waves {
            let known = before.waves.get(uid);
            for stop in
                wave.stops().filter(|stop| !known.is_some_and(|known| known.stops().any(|one| one == *stop)))
            {
                metrics.count(RestartResult::Stopped);
                let scope = if wave.stop_of_all().is_some() { "Instrumentation" } else { "namespace" };
                let note = format!("{}; no other workload of its {scope} is restarted", stop.reason);
                self.news.push(News { workload: stop.workload.clone(), reason: "RestartStopped", note });
                tracing::warn!(
                    workload = stop.workload.to_string(),
                    reason = stop.reason,
                    "restarts stopped"
                );
            }
        }
    }

    async fn take(&mut self, step: Step, metrics: &RestartMetrics) {
        match step {
            Step::Rollout { workload, change } => {
                let Some(version) = self.workloads.get(&workload).map(|known| known.resource_version.clone())
                else {
                    return;
                };
                match steps::roll_out(&self.client, &workload, &change, &version).await {
                    Ok(Taken::Done) => {
                        self.backoff.succeed();
                        if let Some(ledger) = self.memory.ledger().await {
                            ledger.written(&workload);
                        }
                        self.refused.remove(&workload);
                        metrics.count(RestartResult::Begun);
                        tracing::info!(workload = workload.to_string(), config = change.value(), "restarts");
                    }
                    // The next plan tries again.
                    Ok(Taken::Changed | Taken::Refused(_)) => {}
                    Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => {
                        metrics.count(RestartResult::Refused);
                        let message = status.message;
                        tracing::warn!(workload = workload.to_string(), message, "the restart is refused");
                        if let Some(ledger) = self.memory.ledger().await {
                            ledger.refused(&workload, &message, Timestamp::now());
                        }
                        let note = format!("the API server refused its restart: {message}");
                        self.news.push(News { workload, reason: "RestartRefused", note });
                    }
                    Err(error) => {
                        metrics.count(RestartResult::Failed);
                        tracing::warn!(workload = workload.to_string(), %error, "the workload cannot be restarted");
                        self.backoff.fail(&error);
                    }
                }
            }
            Step::Evict { workload, pod, uid } => {
                match steps::evict(&self.client, &workload.namespace, &pod, &uid).await {
                    Ok(Taken::Done) => {
                        metrics.count(RestartResult::Evicted);
                        self.refused.remove(&workload);
                        if let Some(ledger) = self.memory.ledger().await {
                            ledger.evicted(&workload);
                        }
                        tracing::info!(workload = workload.to_string(), pod, "evicted");
                    }
                    Ok(Taken::Changed) => {}
                    Ok(Taken::Refused(why)) => {
                        metrics.count(RestartResult::Refused);
                        self.refuse_eviction(workload, &pod, &why).await;
                    }
                    Err(error) => {
                        metrics.count(RestartResult::Failed);
                        self.refuse_eviction(workload, &pod, &error.to_string()).await;
                    }
                }
            }
        }
    }

    /// Notes that a pod was not evicted.
    async fn refuse_eviction(&mut self, workload: Workload, pod: &str, why: &str) {
        let message = format!("the API server does not evict pod {pod}: {why}");
        if let Some(ledger) = self.memory.ledger().await
            && ledger.eviction_refused(&workload, Timestamp::now())
        {
            tracing::warn!(
                workload = workload.to_string(),
                pod,
                why,
                "the pod cannot be evicted; it is tried again"
            );
            let note = format!("{message}; it is tried again, and other workloads go on");
            self.news.push(News { workload: workload.clone(), reason: "RestartRefused", note });
        }
        self.refused.insert(workload, message);
    }
}

/// Returns the Instrumentations as plans need them.
fn reduced(heads: &Heads) -> Vec<Instrumentation> {
    let of = heads.instrumentations.iter().map(|(name, head)| Instrumentation {
        uid: head.uid.clone(),
        namespace: name.namespace.to_string(),
        generation: head.generation,
        resume: head.resume.clone(),
    });
    of.collect()
}
