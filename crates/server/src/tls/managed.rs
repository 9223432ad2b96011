//! Self-managed certificates: a CA and a serving certificate in a Secret that all replicas share, and `caBundle` of
//! the webhook configurations, and of the CRD if API servers call this webhook to convert. See docs/adr/0006-managed-certificates.md.
//!
//! ```text
//! Secret, configurations ──watch──> Replica: last state ──> plan: required content of the Secret
//!                                      │ next: Action
//!                                      ├─ ChangeSecret: read, plan, write with the same resourceVersion
//!                                      ├─ Mend: read both, patch only caBundle
//!                                      └─ Serve ──> CurrentCertificate
//! ```
//! There is no lease and no leader. All replicas watch the same objects and make the same decisions. The first one
//! writes; the write of another one is rejected with a conflict, since the object has changed since it was read. A
//! replica can stop between any two steps.
//!
//! Architecture invariant: all decisions are in the crate `managed-certs` (`replica` and `plan`), without I/O and
//! without a clock. This module only executes them.

mod clock;
mod objects;
mod report;
mod step;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::Client;
use tracing::{debug, info};

pub use objects::{CRD, cluster_rules, conversion_rules, namespace_rules};

use super::current::CurrentCertificate;
use clock::Clock;
use objects::{ManagedObjects, News, RequestError};
use otel_webhook_managed_certs::plan::{Plan, Policy};
use otel_webhook_managed_certs::replica::{Action, Replica};
use otel_webhook_telemetry::{ManagedOperation, Metrics};
use report::Report;
use step::{StepError, in_time};

/// How often a step is retried at once after a conflict.
const ATTEMPTS: usize = 3;

/// Manages the certificates.
pub struct Managed {
    objects: ManagedObjects,
    replica: Replica,
    clock: Clock,
    current: Arc<CurrentCertificate>,
    report: Report,
}

/// The Secret of the certificates, and the configurations with their `caBundle`.
#[derive(Clone, Debug)]
pub struct Place {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// Names of the configurations, of both kinds.
    pub configurations: Vec<String>,
    /// Service of conversions, in the same namespace, if API servers call this webhook to convert.
    pub conversion: Option<String>,
}

impl Managed {
    /// Returns the state. It starts with [`Managed::run`].
    pub fn new(
        client: Client,
        place: &Place,
        policy: Policy,
        current: Arc<CurrentCertificate>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let objects = ManagedObjects::new(client, place);
        let replica = Replica::new(policy, objects.configurations().len());
        Self { objects, replica, clock: Clock::default(), current, report: Report::new(metrics) }
    }

    /// Creates, rotates and restores certificates, forever. Calls `on_ready` once `caBundle` of the configurations
    /// verifies the serving certificate.
    pub async fn run(mut self, on_ready: impl FnOnce()) {
        let mut news = self.objects.watch().ready_chunks(64);
        let mut on_ready = Some(on_ready);
        loop {
            let wait = self.act().await;
            self.report.state(&self.objects, &self.replica);
            if self.replica.is_ready(Instant::now())
                && let Some(on_ready) = on_ready.take()
            {
                on_ready();
            }
            tokio::select! {
                Some(batch) = news.next() => batch.into_iter().for_each(|news| self.hear(news)),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Secret(secret) => {
                self.replica.hear_secret(secret.map(|secret| *secret));
                self.replica.secret_retry.at_once();
            }
            News::Configuration(index, configuration) => {
                let named = &self.objects.configurations()[index];
                self.report.cainjector(named, configuration.as_ref());
                self.replica.see_configuration(index, configuration, Instant::now());
            }
            News::Failed(what, error) => self.report.watch_failed(&what, &error),
        }
    }

    /// Performs the next action. Returns how long to wait for events before the one after it.
    async fn act(&mut self) -> Duration {
        match self.replica.next(self.clock.now(), Instant::now()) {
            Action::Wait(wait) => return wait,
            Action::Serve(certificate) => {
                info!(not_after = certificate.expires(), "serving a new certificate");
                self.current.replace(certificate);
            }
            Action::ChangeSecret => {
                let outcome = in_time(self.change_secret()).await;
                let name = format!("Secret {}", self.objects.secret_name());
                self.report.outcome(ManagedOperation::Secret, &name, outcome, &mut self.replica.secret_retry);
            }
            Action::Mend(index) => {
                let outcome = in_time(self.mend(index)).await;
                let name = self.objects.configurations()[index].to_string();
                let retry = &mut self.replica.registrations[index].retry;
                self.report.outcome(ManagedOperation::Configuration, &name, outcome, retry);
            }
        }
        Duration::ZERO
    }

    async fn change_secret(&mut self) -> Result<(), StepError> {
        for attempt in 1..=ATTEMPTS {
            self.read_secret().await?;
            let Plan::Change(content, causes) = self.replica.plan(self.clock.now(), Instant::now())? else {
                return Ok(());
            };
            let stored = self.replica.stored();
            if let Some(problem) = stored.and_then(|stored| stored.foreign.clone()) {
                return Err(StepError::Foreign(problem));
            }
            let faults = stored.map(|stored| stored.faults.clone()).unwrap_or_default();
            let written = match stored {
                None => self.objects.create_secret(&content).await,
                Some(stored) => self.objects.update_secret(stored, &content).await,
            };
            match written {
                Ok(stored) => {
                    report::secret_changed(&self.objects, &causes, &faults, content.newest());
                    self.replica.take_secret(Some(stored));
                    return Ok(());
                }
                Err(error) if error.is_conflict() && attempt < ATTEMPTS => {
                    debug!(%error, "conflict with another replica");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads the configuration before the Secret: a newer CA bundle in the configuration is always in the Secret already.
    async fn mend(&mut self, index: usize) -> Result<(), StepError> {
        for attempt in 1..=ATTEMPTS {
            let configuration = self.objects.configuration(index).await?;
            self.read_secret().await?;
            self.replica.see_configuration(index, configuration, Instant::now());
            let found = self.replica.registrations[index].there();
            let (Some(found), Some(content)) = (found, self.replica.whole()) else { return Ok(()) };
            if found.agrees(&content.bundle) {
                return Ok(());
            }
            let (patch, by) = (found.patch(&content.bundle), found.last_manager.clone());
            let was_changed = self.replica.was_changed(index);
            match self.objects.patch(index, patch).await {
                Ok(mended) => {
                    let was_last = self.replica.mended(index, Instant::now());
                    let by = was_changed.then(|| by.unwrap_or_default());
                    self.report.mended(&self.objects.configurations()[index], by.as_deref(), was_last);
                    self.replica.see_configuration(index, Some(mended), Instant::now());
                    return Ok(());
                }
                Err(error) if error.is_conflict() && attempt < ATTEMPTS => {
                    debug!(%error, "conflict with another client");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn read_secret(&mut self) -> Result<(), RequestError> {
        let (secret, date) = self.objects.secret().await?;
        if let Some(date) = date {
            self.clock.hear(&date);
        }
        self.replica.take_secret(secret);
        Ok(())
    }
}
