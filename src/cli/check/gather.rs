//! Reads what the checks need from the cluster, once.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::{Secret, Service},
        discovery::v1::EndpointSlice,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::core::ApiResource;
use serde_json::Value;

use super::{
    certificate::{self, Shown},
    cluster::{Asked, ClusterReader, NotTold},
    crd,
    permissions::{Account, Need, NeedReview},
    registration::{Backend, Registration},
    running::{self, Pod, Running},
    service::ServiceFacts,
};
use crate::{
    cli::client::{Connection, Target},
    tls::trust::ShownChain,
};

/// Timeout of the connection to a URL.
const PATIENCE: Duration = Duration::from_secs(10);

/// The webhook configurations and their backends.
#[derive(Debug, Default)]
pub struct Facts {
    /// The webhook configurations.
    pub registration: Registration,
    /// Whether all configurations could be read; otherwise missing ones are not reported.
    pub is_registration_told: bool,
    /// The Services of the webhooks.
    pub services: Vec<ServiceFacts>,
    /// A pod of the webhook.
    pub running: Option<Running>,
    /// The requests that failed.
    pub not_told: Vec<NotTold>,
}

/// Returns the CRD of the cluster.
pub async fn crd(cluster: &ClusterReader) -> Asked<Option<Value>> {
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    cluster.get_value(&kind, None, crd::NAME).await
}

impl Facts {
    /// Reads the configurations with these names, and their backends.
    pub async fn gather(cluster: &ClusterReader, names: &[String]) -> Self {
        let mut facts = Self::default();
        let mutating = cluster.list::<MutatingWebhookConfiguration>(None, None).await;
        let validating = cluster.list::<ValidatingWebhookConfiguration>(None, None).await;
        facts.is_registration_told = mutating.is_ok() && validating.is_ok();
        let (mutating, validating) = (facts.told(mutating), facts.told(validating));
        facts.registration = Registration::new(names, &mutating, &validating);
        let mut ports: BTreeMap<(String, String), Vec<i32>> = BTreeMap::new();
        for hook in &facts.registration.ours {
            if let Backend::Service { namespace, name, port, .. } = &hook.backend {
                let known = ports.entry((namespace.clone(), name.clone())).or_default();
                if !known.contains(port) {
                    known.push(*port);
                }
            }
        }
        for ((namespace, name), ports) in ports {
            let service = cluster.get::<Service>(Some(&namespace), &name).await;
            let of_service = format!("kubernetes.io/service-name={name}");
            let slices = cluster.list::<EndpointSlice>(Some(&namespace), Some(&of_service)).await;
            facts.find_pods(cluster, &namespace, &service).await;
            facts.services.push(ServiceFacts { namespace, name, ports, service, slices });
        }
        facts
    }

    /// Finds a pod of a Service, to read the webhook's flags.
    async fn find_pods(
        &mut self,
        cluster: &ClusterReader,
        namespace: &str,
        service: &Asked<Option<Service>>,
    ) {
        let Ok(Some(service)) = service else { return };
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let Some(selector) = selector.filter(|selector| !selector.is_empty()) else { return };
        let pairs: Vec<_> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let pods = cluster.list::<Pod>(Some(namespace), Some(&pairs.join(","))).await;
        let pods = self.told(pods);
        self.running = self.running.take().or_else(|| running::newest(&pods));
    }

    fn told<T>(&mut self, asked: Asked<Vec<T>>) -> Vec<T> {
        asked.unwrap_or_else(|not_told| {
            self.not_told.push(not_told);
            Vec::new()
        })
    }

    /// Returns the certificates of the backends, each read once.
    pub async fn certificates(
        &self,
        cluster: &ClusterReader,
        secret: Option<&str>,
    ) -> BTreeMap<String, Shown> {
        let mut shown = BTreeMap::new();
        for hook in &self.registration.ours {
            let key = certificate::origin(&hook.backend);
            if shown.contains_key(&key) {
                continue;
            }
            let found = match &hook.backend {
                Backend::Service { namespace, .. } => self.of_secret(cluster, namespace, secret).await,
                Backend::Url(url) => of_url(url).await,
            };
            shown.insert(key, found);
        }
        shown
    }

    async fn of_secret(&self, cluster: &ClusterReader, namespace: &str, secret: Option<&str>) -> Shown {
        let by_pod = || {
            let running = self.running.as_ref().ok_or("no pod of the webhook found")?;
            let flags = running.flags.as_ref().map_err(|problem| &**problem)?;
            flags.secret.as_deref().ok_or("the webhook's pods mount no Secret with it")
        };
        let name = match secret {
            Some(name) => name,
            None => by_pod().map_err(|problem| format!("{problem}; set it by --secret NAME"))?,
        };
        let found = cluster.get::<Secret>(Some(namespace), name).await;
        let found = found.map_err(|NotTold { problem, .. }| problem)?;
        let found = found.ok_or_else(|| format!("Secret {namespace}/{name} not found"))?;
        let certificate = found.data.as_ref().and_then(|data| data.get("tls.crt"));
        let certificate = certificate.ok_or_else(|| format!("Secret {namespace}/{name} has no tls.crt"))?;
        ShownChain::from_pem(&certificate.0)
            .map_err(|problem| format!("Secret {namespace}/{name}: {problem}"))
    }
}

/// Returns the certificate of a server outside of the cluster.
async fn of_url(url: &str) -> Shown {
    let uri: hyper::Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let target = Target { host, port: uri.port_u16().unwrap_or(443) };
    let connection = tokio::time::timeout(PATIENCE, Connection::open(&target)).await;
    let connection =
        connection.map_err(|_| format!("the connection to {target} timed out after {PATIENCE:?}"))?;
    let connection = connection.map_err(|error| error.to_string())?;
    ShownChain::new(connection.chain).map_err(|error| error.to_string())
}

/// Returns the permissions of a service account.
pub async fn answers(cluster: &ClusterReader, account: &Account, needs: Vec<Need>) -> Asked<Vec<NeedReview>> {
    let mut answers = Vec::new();
    for need in needs {
        let mut missing = Vec::new();
        for verb in &need.verbs {
            let answered = cluster.create(&account.question(&need, verb)).await?;
            if !answered.status.is_some_and(|status| status.allowed) {
                missing.push(verb.clone());
            }
        }
        answers.push(NeedReview { need, missing });
    }
    Ok(answers)
}
