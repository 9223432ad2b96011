//! Which new pods API servers send to the webhook, by its registration.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::{Api, Client};
use tokio::time::Instant;

use otel_webhook_server::registration::Registration;

/// How often the configurations are read. They change with the installation only.
const PERIOD: Duration = Duration::from_secs(30);

/// The registration of the webhook.
pub struct Selection {
    api: Api<MutatingWebhookConfiguration>,
    names: Vec<String>,
    due: Instant,
    found: Vec<MutatingWebhookConfiguration>,
    /// None while it cannot be read: all pods count as selected then.
    registration: Option<Registration>,
}

impl Selection {
    /// Returns the selection of these configurations.
    pub fn new(client: Client, names: Vec<String>) -> Self {
        Self { api: Api::all(client), names, due: Instant::now(), found: Vec::new(), registration: None }
    }

    /// Reads the configurations again, if that is due. Returns whether something has changed.
    pub async fn refresh(&mut self) -> bool {
        if Instant::now() < self.due {
            return false;
        }
        self.due = Instant::now() + PERIOD;
        let mut found = Vec::new();
        for name in &self.names {
            match self.api.get_opt(name).await {
                Ok(configuration) => found.extend(configuration),
                Err(error) => {
                    tracing::warn!(name, %error, "a webhook configuration cannot be read; selectors are used as last read");
                    return false;
                }
            }
        }
        if self.registration.is_some() && found == self.found {
            return false;
        }
        self.registration = Some(Registration::new(&self.names, &found, &[]));
        self.found = found;
        true
    }

    /// Returns whether a new pod is sent to the webhook.
    pub fn selects(
        &self,
        namespace: &BTreeMap<String, String>,
        pod: &BTreeMap<String, String>,
        asks_itself: bool,
    ) -> bool {
        let Some(registration) = &self.registration else { return true };
        registration.pods().any(|hook| hook.selects(namespace, pod, asks_itself))
    }
}
