//! Objects of lists, and the names of service accounts.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::ApiResource;
use serde_json::Value;

use otel_webhook_api::ANNOTATION_PREFIX;
use otel_webhook_inject::language::LANGUAGES;
use otel_webhook_server::registration::Labels;

/// Adds the type, which lists omit from their items.
pub fn typed(mut object: Value, api_version: &str, kind: &str) -> Value {
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object
}

/// Returns the labels of an object.
pub fn labels(object: &Value) -> Labels {
    let all = object["metadata"]["labels"].as_object().into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Returns the languages that a pod itself opts in to or out of, regardless of its namespace.
pub fn own_languages(pod: &Value) -> Vec<&'static str> {
    let asks = |key: &str| {
        let key = format!("{ANNOTATION_PREFIX}{key}");
        ["annotations", "labels"].iter().any(|entries| pod["metadata"][entries][&key].is_string())
    };
    let own = LANGUAGES.into_iter().filter(|language| asks(language.inject));
    own.map(|language| language.name).collect()
}

/// Returns a string; empty if it is another value.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The beginnings of the names of the volumes that injection adds.
const VOLUMES: [&str; 2] = ["otel-auto-secret-", "otel-auto-configmap-"];

/// A Secret or a `ConfigMap` that injection makes a pod refer to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Referenced {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Whether a container does not start without it: it is the source of a variable. An exporter's files are optional.
    pub is_required: bool,
}

impl Referenced {
    /// Returns the resource of its kind.
    pub fn resource(&self) -> ApiResource {
        match self.kind {
            "Secret" => ApiResource::erase::<Secret>(&()),
            _ => ApiResource::erase::<ConfigMap>(&()),
        }
    }
}

/// Returns the objects that injection makes a pod refer to, by the pod before and after the injection.
pub fn referenced(before: &Value, after: &Value) -> Vec<Referenced> {
    let own: HashSet<_> = sources(before).collect();
    files(after).chain(sources(after).filter(|source| !own.contains(source))).collect()
}

/// Returns the objects that injection mounts into a pod, as it is after the injection.
pub fn files(injected: &Value) -> impl Iterator<Item = Referenced> {
    let volumes = injected["spec"]["volumes"].as_array().into_iter().flatten();
    let added = volumes.filter(|volume| {
        let name = volume["name"].as_str().unwrap_or_default();
        VOLUMES.iter().any(|start| name.starts_with(start))
    });
    added.filter_map(|volume| {
        let secret = volume["secret"]["secretName"].as_str().map(|name| ("Secret", name));
        let found = secret.or_else(|| volume["configMap"]["name"].as_str().map(|name| ("ConfigMap", name)));
        found.map(|(kind, name)| Referenced { kind, name: name.to_owned(), is_required: false })
    })
}

/// Returns the objects without which a container of a pod does not start, by its variables.
fn sources(pod: &Value) -> impl Iterator<Item = Referenced> {
    let containers = ["initContainers", "containers"].into_iter();
    let containers = containers.flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    let variables = containers.flat_map(|container| container["env"].as_array().into_iter().flatten());
    variables.flat_map(|variable| {
        let kinds = [("Secret", "secretKeyRef"), ("ConfigMap", "configMapKeyRef")].into_iter();
        kinds.filter_map(|(kind, field)| {
            let source = &variable["valueFrom"][field];
            let name = source["name"].as_str().filter(|_| source["optional"] != true)?;
            Some(Referenced { kind, name: name.to_owned(), is_required: true })
        })
    })
}

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The objects of a webhook with managed certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedNames {
    /// The namespace of the webhook.
    pub namespace: String,
    /// The Secret.
    pub secret: String,
    /// The configurations.
    pub configurations: Vec<String>,
    /// Whether it updates the CRD for conversions, too.
    pub converts: bool,
}

impl Account {
    /// Parses `NAMESPACE/NAME`.
    ///
    /// # Errors
    /// If the text has another format.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("expected NAMESPACE/NAME, such as otel-webhook/otel-webhook".to_owned()),
        }
    }
}
