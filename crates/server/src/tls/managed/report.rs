//! Log lines, each once, and metrics of managed certificates.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use kube::runtime::watcher;
use tracing::{info, warn};

use super::objects::{ManagedObjects, Named};
use super::step::StepError;
use otel_webhook_managed_certs::configuration::Configuration;
use otel_webhook_managed_certs::plan::Cause;
use otel_webhook_managed_certs::replica::Replica;
use otel_webhook_managed_certs::restraint::Retry;
use otel_webhook_managed_certs::x509::X509;
use otel_webhook_telemetry::{ManagedOperation, Metrics};

const ADVICE: &str = "; the service account needs the rules that `otel-webhook rbac` prints";

/// The reports, and which of them were already logged.
pub struct Report {
    metrics: Arc<Metrics>,
    said_unregistered: bool,
    said_cainjector: BTreeSet<String>,
}

impl Report {
    /// Starts without reports.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        metrics.managed.expect();
        Self { metrics, said_unregistered: false, said_cainjector: BTreeSet::new() }
    }

    /// Reports the current state.
    pub fn state(&mut self, objects: &ManagedObjects, replica: &Replica) {
        let is_unregistered = replica.is_unregistered();
        if is_unregistered && !self.said_unregistered {
            warn!(
                names = objects.names().join(", "),
                "not ready: none of these webhook configurations exists yet"
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

    /// Reports the outcome of a step. A failure is counted each time, and logged once.
    pub fn outcome(
        &self,
        operation: ManagedOperation,
        object: &str,
        outcome: Result<(), StepError>,
        retry: &mut Retry,
    ) {
        let Err(error) = outcome else {
            if retry.succeeded() {
                info!(object, "the operation succeeded again");
            }
            return;
        };
        self.metrics.managed.count_failure(operation);
        let is_forbidden = matches!(&error, StepError::Request(error) if error.is_forbidden());
        let advice = if is_forbidden { ADVICE } else { "" };
        if retry.failed(&error.to_string(), Instant::now(), fastrand::f64()) {
            warn!(object, %error, "an operation of managed certificates failed; retrying{advice}");
        }
    }

    /// Reports the failure of a watch, which restarts automatically.
    pub fn watch_failed(&self, what: &str, error: &watcher::Error) {
        self.metrics.managed.count_failure(ManagedOperation::Watch);
        let is_forbidden = matches!(
            error,
            watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 403
        );
        let advice = if is_forbidden { ADVICE } else { "" };
        warn!(what, %error, "a watch failed; retrying{advice}");
    }

    /// Reports that `caBundle` of a configuration was set. `changed_by` is the field manager that had changed it, if any.
    pub fn mended(&self, configuration: &Named, changed_by: Option<&str>, was_last: bool) {
        let Some(by) = changed_by else {
            info!(%configuration, "set caBundle");
            return;
        };
        self.metrics.managed.count_repair();
        warn!(%configuration, by, "another client changed caBundle; it was restored");
        if was_last {
            warn!(
                %configuration,
                by,
                "another client changes caBundle repeatedly; not restoring it for a while. Only one tool may manage \
                 caBundle: disable it in the other one"
            );
        }
    }

    /// Reports that cert-manager is configured to manage the same field.
    pub fn cainjector(&mut self, named: &Named, configuration: Option<&Configuration>) {
        let configuration = configuration.and_then(|found| Some((named.to_string(), found.cainjector?)));
        if let Some((configuration, annotation)) = configuration
            && self.said_cainjector.insert(configuration.clone())
        {
            warn!(
                configuration,
                annotation, "cert-manager is configured to set caBundle as well; remove the annotation"
            );
        }
    }
}

/// Reports that the Secret was changed.
pub fn secret_changed(objects: &ManagedObjects, causes: &[Cause], faults: &[String], ca: Option<&X509>) {
    let object = format!("Secret {}", objects.secret_name());
    let ca = ca.map_or("", |ca| &ca.serial);
    for cause in causes {
        info!(object, ca, "{cause}");
    }
    if !faults.is_empty() {
        warn!(object, faults = faults.join("; "), "the Secret was invalid and was repaired");
    }
}
