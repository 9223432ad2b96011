//! The Kubernetes objects of managed certificates: one Secret, the webhook configurations, and the CRD if API servers
//! call this webhook to convert.

use std::time::Duration;

use futures::stream::{BoxStream, select_all};
use futures::{Stream, StreamExt, future, stream};
use http_body_util::BodyExt;
use hyper::header::DATE;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GetParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::{Request, Status};
use kube::runtime::{watcher, watcher::Config, watcher::Event};
use kube::{Api, Client};
use serde_json::{Value, json};
use thiserror::Error;

use super::Place;
use otel_webhook_managed_certs::configuration::Configuration;
use otel_webhook_managed_certs::content::Content;
use otel_webhook_managed_certs::program::PROGRAM;
use otel_webhook_managed_certs::secret::{self, Stored};
use otel_webhook_store::scope::follow;

/// Returns the cluster-wide rules for managed certificates, with the placeholder `CONFIGURATION`.
pub fn cluster_rules() -> [Value; 1] {
    [json!({
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "resourceNames": ["CONFIGURATION"],
        "verbs": ["get", "list", "watch", "patch"],
    })]
}

/// Name of the CRD.
pub const CRD: &str = "instrumentations.opentelemetry.io";

/// How often the CRD is read: a watch would need more permissions.
const PERIOD: Duration = Duration::from_secs(10);

/// Returns the cluster-wide rules for the conversion webhook of the CRD.
pub fn conversion_rules() -> [Value; 1] {
    [json!({
        "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
        "resourceNames": [CRD], "verbs": ["get", "patch"],
    })]
}

/// Returns the Role's rules for managed certificates, with the placeholder `SECRET`.
///
/// `create` is restricted to the name as well: the Secret is created by a patch, which has a name, unlike a POST.
pub fn namespace_rules() -> [Value; 1] {
    [json!({
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": ["SECRET"],
        "verbs": ["get", "list", "watch", "create", "patch", "update"],
    })]
}

/// An event of a watch.
pub enum News {
    Secret(Option<Box<Stored>>),
    Configuration(usize, Option<Configuration>),
    Failed(String, watcher::Error),
}

/// Why a request to the API server failed.
#[derive(Debug, Error)]
pub enum RequestError {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("the response is not a Secret: {0}")]
    NotASecret(serde_json::Error),
    #[error("cannot build the request: {0}")]
    Request(#[from] kube::core::request::Error),
}

/// Access to the objects.
pub struct ManagedObjects {
    client: Client,
    namespace: String,
    name: String,
    secrets: Api<DynamicObject>,
    configurations: Vec<Named>,
}

/// A configuration of one kind and name, which may not exist.
#[derive(Clone)]
pub struct Named {
    pub kind: String,
    pub name: String,
    api: Api<DynamicObject>,
    /// Namespace and name of the Service of conversions, of a CRD.
    conversion: Option<(String, String)>,
}

impl ManagedObjects {
    /// Returns access to the Secret, to the configurations of both kinds with these names, and to the CRD if there is a
    /// Service of conversions.
    pub fn new(client: Client, place: &Place) -> Self {
        let Place { namespace, secret: name, configurations, conversion } = place;
        let secrets = Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<v1::Secret>(&()));
        let kinds = [
            ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
        ];
        let named = |name: &String| {
            kinds.clone().map(|kind| Named {
                kind: kind.kind.clone(),
                name: name.clone(),
                api: Api::all_with(client.clone(), &kind),
                conversion: None,
            })
        };
        let crd = conversion.as_ref().map(|service| {
            let kind = ApiResource::erase::<CustomResourceDefinition>(&());
            Named {
                api: Api::all_with(client.clone(), &kind),
                kind: kind.kind,
                name: CRD.to_owned(),
                conversion: Some((namespace.clone(), service.clone())),
            }
        });
        let configurations = configurations.iter().flat_map(named).chain(crd).collect();
        Self { client, namespace: namespace.clone(), name: name.clone(), secrets, configurations }
    }

    /// Returns the configurations, in the order of their indices.
    pub fn configurations(&self) -> &[Named] {
        &self.configurations
    }

    /// Returns the names of the configurations, without duplicates.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.configurations.iter().map(|named| named.name.as_str()).collect();
        names.dedup();
        names
    }

    /// Returns the Secret as `namespace/name`.
    pub fn secret_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Watches all objects, each by its name, since the roles grant nothing else.
    pub fn watch(&self) -> impl Stream<Item = News> + use<> {
        let mut watches: Vec<BoxStream<'static, News>> =
            vec![news(&self.secrets, &self.name, format!("Secret {}", self.secret_name()), |object| {
                News::Secret(object.map(|object| Box::new(stored(&object))))
            })];
        for (index, named) in self.configurations.iter().enumerate() {
            let of = named.clone();
            let read = move |object: Option<DynamicObject>| {
                News::Configuration(index, object.map(|object| of.read(&object)))
            };
            watches.push(if named.conversion.is_some() {
                polled(named.clone(), read)
            } else {
                news(&named.api, &named.name, named.to_string(), read)
            });
        }
        select_all(watches)
    }

    /// Reads the Secret, and the time of the API server.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn secret(&self) -> Result<(Option<Stored>, Option<String>), RequestError> {
        let request = Request::new(self.secrets.resource_url()).get(&self.name, &GetParams::default())?;
        let response = self.client.send(request.map(Body::from)).await?;
        let (head, body) = response.into_parts();
        let date = head.headers.get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        let body = body.collect().await?.to_bytes();
        if head.status.is_success() {
            let object = serde_json::from_slice(&body).map_err(RequestError::NotASecret)?;
            return Ok((Some(stored(&object)), date));
        }
        if head.status == hyper::StatusCode::NOT_FOUND {
            return Ok((None, date));
        }
        let status = serde_json::from_slice::<Status>(&body);
        let status = status.unwrap_or_else(|_| Status::failure(head.status.as_str(), "no Status"));
        Err(kube::Error::Api(status.with_code(head.status.as_u16()).boxed()).into())
    }

    /// Creates the Secret. If several replicas do so, all but one get a conflict.
    ///
    /// Uses server-side apply without force, with a unique field manager: with a shared one, the API server would let
    /// the second replica overwrite the Secret.
    ///
    /// # Errors
    /// If it exists already, or the API server rejects it.
    pub async fn create_secret(&self, content: &Content) -> Result<Stored, RequestError> {
        let serial = content.newest().map(|newest| newest.serial.replace(':', "")).unwrap_or_default();
        let params = PatchParams::apply(&format!("{PROGRAM}-{serial}"));
        let object = secret::new(&self.namespace, &self.name, content);
        Ok(stored(&self.secrets.patch(&self.name, &params, &Patch::Apply(object)).await?))
    }

    /// Updates the Secret, if it has not changed since it was read.
    ///
    /// # Errors
    /// If it has changed, or the API server rejects it.
    pub async fn update_secret(&self, read: &Stored, content: &Content) -> Result<Stored, RequestError> {
        let params = PostParams { field_manager: Some(PROGRAM.to_owned()), ..PostParams::default() };
        let object = serde_json::from_value(read.with(content)).map_err(RequestError::NotASecret)?;
        Ok(stored(&self.secrets.replace(&self.name, &params, &object).await?))
    }

    /// Reads a configuration.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn configuration(&self, index: usize) -> Result<Option<Configuration>, RequestError> {
        let named = &self.configurations[index];
        Ok(named.api.get_opt(&named.name).await?.map(|object| named.read(&object)))
    }

    /// Patches a configuration, if it has not changed since it was read.
    ///
    /// # Errors
    /// If it has changed, or the API server rejects it.
    pub async fn patch(&self, index: usize, patch: json_patch::Patch) -> Result<Configuration, RequestError> {
        let named = &self.configurations[index];
        let params = PatchParams { field_manager: Some(PROGRAM.to_owned()), ..PatchParams::default() };
        let object = named.api.patch(&named.name, &params, &Patch::Json::<()>(patch)).await?;
        Ok(named.read(&object))
    }
}

impl Named {
    fn read(&self, object: &DynamicObject) -> Configuration {
        match &self.conversion {
            None => Configuration::read(&document(object)),
            Some((namespace, service)) => Configuration::read_crd(&document(object), namespace, service),
        }
    }
}

impl RequestError {
    /// Returns whether another client changed the object first: 409 if it has changed, 404 if it was deleted, 422 if the
    /// test operation of a patch failed.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Kube(kube::Error::Api(status)) if [404, 409, 422].contains(&status.code))
    }

    /// Returns whether a permission is missing.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Kube(kube::Error::Api(status)) if status.code == 403)
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

fn news(
    api: &Api<DynamicObject>,
    name: &str,
    what: String,
    read: impl Fn(Option<DynamicObject>) -> News + Send + 'static,
) -> BoxStream<'static, News> {
    let events = follow(api.clone(), Config::default().fields(&format!("metadata.name={name}")));
    let news = events.scan(false, move |is_listed, event| {
        let news = match event {
            Ok(Event::Init) => {
                *is_listed = false;
                None
            }
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                *is_listed = true;
                Some(read(Some(object)))
            }
            Ok(Event::InitDone) if *is_listed => None,
            Ok(Event::InitDone | Event::Delete(_)) => Some(read(None)),
            Err(error) => Some(News::Failed(what.clone(), error)),
        };
        future::ready(Some(news))
    });
    news.filter_map(future::ready).boxed()
}

/// Reads an object by its name, again and again.
fn polled(
    named: Named,
    read: impl Fn(Option<DynamicObject>) -> News + Send + 'static,
) -> BoxStream<'static, News> {
    let each = stream::unfold((named, Duration::ZERO), |(named, wait)| async move {
        tokio::time::sleep(wait).await;
        let found = named.api.get_opt(&named.name).await;
        let found = found.map_err(|error| (named.to_string(), error));
        Some((found, (named, PERIOD)))
    });
    let news = each.map(move |found| match found {
        Ok(object) => read(object),
        Err((what, error)) => News::Failed(what, watcher::Error::InitialListFailed(error)),
    });
    news.boxed()
}

/// Parses the Secret here and not in the client, which would log a Secret, with its keys, that it cannot parse.
fn stored(object: &DynamicObject) -> Stored {
    Stored::read(document(object))
}

fn document(object: &DynamicObject) -> Value {
    serde_json::to_value(object).expect("an object that was read from JSON can be written as JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_survive_a_round_trip_through_json() {
        let bundle = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {"f:clientConfig": {"f:caBundle": {}}}}});
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {
                "name": "a", "namespace": "b", "resourceVersion": "7", "uid": "u",
                "creationTimestamp": "2026-11-03T10:00:05Z", "labels": {"team": "platform"},
                "managedFields": [{
                    "manager": "kubectl-edit", "operation": "Update", "time": "2026-11-03T10:00:05Z",
                    "fieldsV1": bundle,
                }],
            },
            "data": {"extra": "eA=="},
        });
        let read: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
        assert_eq!(document(&read), object);
        assert_eq!(Configuration::read(&document(&read)).last_manager.as_deref(), Some("kubectl-edit"));

        let written = stored(&read).with(&Content::default());
        let written: DynamicObject = serde_json::from_value(written).expect("an object");
        assert_eq!(written.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(written.data["data"]["extra"], "eA==");
    }
}
