//! Certificates that look after themselves: one authority and one serving certificate in a Secret that all
//! replicas share, and `caBundle` of the webhook configurations.
//!
//! ```text
//! Secret, configurations ──watch──> Replica: what is known ──> plan: what the Secret has to hold
//!                                      │ next: Action
//!                                      ├─ ChangeSecret: read, plan, write with the version that was read
//!                                      ├─ Mend: read both, patch caBundle alone
//!                                      └─ Serve ──> CurrentCertificate
//! ```
//! There is no lease, and no replica is special. Each looks at the same objects and comes to the same
//! conclusion; whoever is first writes, and the others find it done, since every write follows a read and is
//! refused when the object has changed in between. A replica can end between any two steps.
//!
//! Architecture invariant: all decisions are in the crate `managed-certs` (`replica` and `plan`), without I/O
//! and without a clock; here is only what carries them out.

mod clock;
mod objects;
mod report;
mod step;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::Client;
use tracing::{debug, info};

pub use objects::{cluster_rules, namespace_rules};

use super::current::CurrentCertificate;
use crate::telemetry::{ManagedOperation, Metrics};
use clock::Clock;
use objects::{ManagedObjects, News, RequestError};
use otel_webhook_managed_certs::plan::{Plan, Policy};
use otel_webhook_managed_certs::replica::{Action, Replica};
use report::Report;
use step::{StepError, in_time};

/// How often a step is tried again at once when somebody else was faster.
const ATTEMPTS: usize = 3;

/// Looks after the certificates, for as long as the program runs.
pub struct Managed {
    objects: ManagedObjects,
    replica: Replica,
    clock: Clock,
    current: Arc<CurrentCertificate>,
    report: Report,
}

/// Where the certificates are kept and who is to trust them.
#[derive(Clone, Debug)]
pub struct Place {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Its name.
    pub secret: String,
    /// Names of the configurations, of both kinds.
    pub configurations: Vec<String>,
}

impl Managed {
    /// Nothing is done before [`Managed::run`].
    pub fn new(
        client: Client,
        place: &Place,
        policy: Policy,
        current: Arc<CurrentCertificate>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let objects = ManagedObjects::new(client, &place.namespace, &place.secret, &place.configurations);
        let replica = Replica::new(policy, objects.configurations().len());
        Self { objects, replica, clock: Clock::default(), current, report: Report::new(metrics) }
    }

    /// Makes what is missing, renews what is due and puts back what was changed, for ever. `on_ready` is
    /// called once the certificate in use is trusted by the configurations.
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

    /// Does the next thing. Gives how long to wait for news before the one after it.
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
                    debug!(%error, "another replica was faster");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The configuration is read before the Secret: whoever put a newer bundle into it in between had
    /// written that to the Secret first.
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
                    debug!(%error, "somebody else was faster");
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
