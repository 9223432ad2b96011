//! Reads what only the checks need from the cluster: the CRD, certificates and permissions.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{
    api::core::v1::{Secret, Service},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::core::ApiResource;
use serde_json::Value;

use super::{
    certificate::{self, Shown},
    conversion, crd,
    permissions::{Need, NeedReview},
};
use crate::{
    client::{Connection, Target},
    cluster::{
        facts::Facts,
        object::Account,
        reader::{Asked, ClusterReader, FailedRequest},
    },
};
use otel_webhook_server::{registration::Backend, tls::trust::ShownChain};
use otel_webhook_store::served;

/// Timeout of the connection to a URL.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the CRD of the cluster.
pub async fn crd(cluster: &ClusterReader) -> Asked<Option<Value>> {
    let kind = ApiResource::erase::<CustomResourceDefinition>(&());
    cluster.get_value(&kind, None, crd::NAME).await
}

/// Returns why the API server cannot convert Instrumentations, if it cannot.
pub async fn conversion_problem(cluster: &ClusterReader, crd: &Value) -> Option<String> {
    if crd["spec"]["conversion"]["strategy"] != "Webhook" {
        return None;
    }
    // Without one, the webhook has a URL.
    if let Some((namespace, name)) = conversion::service(crd)
        && let Ok(None) = cluster.get::<Service>(Some(namespace), name).await
    {
        return Some(format!("Service {namespace}/{name}, which converts them, not found"));
    }
    // The list of Instrumentations reports a missing permission.
    served::conversion_problem(&cluster.client()).await.ok().flatten()
}

impl Facts {
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
        let found = found.map_err(|FailedRequest { problem, .. }| problem)?;
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
