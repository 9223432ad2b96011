//! What operators are told: log lines, each once, and metrics.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use kube::runtime::watcher;
use tracing::{info, warn};

use super::objects::{ManagedObjects, Named};
use super::step::StepError;
use crate::telemetry::{ManagedOperation, Metrics};
use otel_webhook_managed_certs::configuration::Configuration;
use otel_webhook_managed_certs::plan::Cause;
use otel_webhook_managed_certs::replica::Replica;
use otel_webhook_managed_certs::restraint::Retry;
use otel_webhook_managed_certs::x509::X509;

const ADVICE: &str = "; the service account needs the rules that `otel-webhook rbac` prints";

/// What is told, and what has been.
pub struct Report {
    metrics: Arc<Metrics>,
    said_unregistered: bool,
    said_cainjector: BTreeSet<String>,
}

impl Report {
    /// Nothing has been told.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        metrics.managed.expect();
        Self { metrics, said_unregistered: false, said_cainjector: BTreeSet::new() }
    }

    /// How things stand.
    pub fn state(&mut self, objects: &ManagedObjects, replica: &Replica) {
        let is_unregistered = replica.is_unregistered();
        if is_unregistered && !self.said_unregistered {
            warn!(
                names = objects.names().join(", "),
                "no webhook configuration of these exists yet: not ready before there is one"
            );
        }
        self.said_unregistered = is_unregistered;
        let Some(content) = replica.whole() else { return };
        let newest = content.newest().map_or(0, |newest| newest.not_after.as_second());
        self.metrics.managed.set_ca_expiry(&objects.secret_name(), newest);
        for (named, registration) in objects.configurations().iter().zip(&replica.registrations) {
            let agrees = registration.there().map(|there| there.agrees(&content.bundle));
            self.metrics.managed.set_ca_bundle_current(&named.kind, &named.name, agrees);
        }
    }

    /// How a step came out: a failure is counted each time, and said once.
    pub fn outcome(
        &self,
        operation: ManagedOperation,
        object: &str,
        outcome: Result<(), StepError>,
        retry: &mut Retry,
    ) {
        let Err(error) = outcome else {
            if retry.succeeded() {
                info!(object, "it works again");
            }
            return;
        };
        self.metrics.managed.count_failure(operation);
        let is_forbidden = matches!(&error, StepError::Request(error) if error.is_forbidden());
        let advice = if is_forbidden { ADVICE } else { "" };
        if retry.failed(&error.to_string(), Instant::now()) {
            warn!(object, %error, "managed certificates cannot go on{advice}; trying again");
        }
    }

    /// A watch ended with an error; it begins again by itself.
    pub fn watch_failed(&self, what: &str, error: &watcher::Error) {
        self.metrics.managed.count_failure(ManagedOperation::Watch);
        let is_forbidden = matches!(
            error,
            watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 403
        );
        let advice = if is_forbidden { ADVICE } else { "" };
        warn!(what, %error, "a watch failed{advice}; trying again");
    }

    /// The bundle was put into a configuration; `changed_by` is who had changed it, where somebody had.
    pub fn mended(&self, configuration: &Named, changed_by: Option<&str>, was_last: bool) {
        let Some(by) = changed_by else {
            info!(%configuration, "caBundle is set");
            return;
        };
        self.metrics.managed.count_repair();
        warn!(%configuration, by, "caBundle was changed, and is put back");
        if was_last {
            warn!(
                %configuration,
                by,
                "caBundle is changed again and again, and is left alone for a while. Is another tool told to \
                 look after it? Only one can be"
            );
        }
    }

    /// Another tool is told to look after the same field.
    pub fn cainjector(&mut self, named: &Named, configuration: Option<&Configuration>) {
        let configuration = configuration.and_then(|found| Some((named.to_string(), found.cainjector?)));
        if let Some((configuration, annotation)) = configuration
            && self.said_cainjector.insert(configuration.clone())
        {
            warn!(
                configuration,
                annotation, "cert-manager is told to look after caBundle as well; remove the annotation"
            );
        }
    }
}

/// The Secret was changed.
pub fn secret_changed(
    objects: &ManagedObjects,
    causes: &[Cause],
    faults: &[String],
    authority: Option<&X509>,
) {
    let object = format!("Secret {}", objects.secret_name());
    let authority = authority.map_or("", |authority| &authority.serial);
    for cause in causes {
        info!(object, authority, "{cause}");
    }
    if !faults.is_empty() {
        warn!(object, faults = faults.join("; "), "it was damaged, and is mended");
    }
}
