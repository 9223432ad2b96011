//! The managed part of a webhook configuration, or of a CRD with a conversion webhook: the `caBundle` of its webhooks.

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use json_patch::Patch;
use serde_json::{Value, json};

use crate::content::read_certificates;
use crate::program::PROGRAM;
use crate::x509::X509;

/// The annotations by which cert-manager's cainjector sets `caBundle`.
const CAINJECTOR: [&str; 3] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
];

/// The present state of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    webhooks: Vec<Webhook>,
    resource_version: String,
    /// The annotation by which cert-manager changes it, too.
    pub cainjector: Option<&'static str>,
    /// The field manager that changed it last, other than the replicas.
    pub last_manager: Option<String>,
}

#[derive(Clone, Debug)]
struct Webhook {
    /// JSON pointer of its `clientConfig`.
    client: String,
    /// JSON pointer of its name, or of that of its Service.
    name_at: String,
    name: String,
    /// The readable certificates of each `caBundle`; API servers do not trust the rest.
    authorities: Vec<X509>,
}

impl Configuration {
    /// Reads a configuration, mutating or validating.
    pub fn read(object: &Value) -> Self {
        let webhooks = object["webhooks"].as_array().map_or(&[][..], Vec::as_slice);
        Self {
            webhooks: webhooks.iter().enumerate().map(Webhook::read).collect(),
            ..Self::read_metadata(object)
        }
    }

    /// Reads a CRD. Its conversion webhook is managed if it is this Service; that of another program is not.
    pub fn read_crd(object: &Value, namespace: &str, service: &str) -> Self {
        let conversion = &object["spec"]["conversion"];
        let client = &conversion["webhook"]["clientConfig"];
        let is_ours = conversion["strategy"] == "Webhook"
            && client["service"]["namespace"] == namespace
            && client["service"]["name"] == service;
        Self {
            webhooks: is_ours.then(|| Webhook::of_conversion(client)).into_iter().collect(),
            ..Self::read_metadata(object)
        }
    }

    fn read_metadata(object: &Value) -> Self {
        let annotations = &object["metadata"]["annotations"];
        let cainjector = CAINJECTOR.into_iter().find(|name| annotations.get(name).is_some());
        Self {
            webhooks: Vec::new(),
            resource_version: text(&object["metadata"]["resourceVersion"]),
            cainjector,
            last_manager: last_manager(object),
        }
    }

    /// Whether it has no webhook.
    pub fn is_empty(&self) -> bool {
        self.webhooks.is_empty()
    }

    /// The CAs that are in the CA bundle of every webhook.
    pub fn trusted(&self) -> Vec<X509> {
        let mut webhooks = self.webhooks.iter().map(|webhook| &webhook.authorities);
        let first = webhooks.next().cloned().unwrap_or_default();
        webhooks.fold(first, |mut common, next| {
            common.retain(|authority| next.contains(authority));
            common
        })
    }

    /// Whether the CA bundle of every webhook has exactly these CAs.
    pub fn agrees(&self, bundle: &[X509]) -> bool {
        self.webhooks.iter().all(|webhook| webhook.agrees(bundle))
    }

    /// Returns the patch that sets the CA bundle; it changes only `caBundle`. It fails for any other
    /// version of the object, so it never reverts a newer change of another replica.
    ///
    /// It is a JSON patch, since with server-side apply our ownership would keep webhooks that were removed
    /// from the configuration, as entries with only a `caBundle`.
    pub fn patch(&self, bundle: &[X509]) -> Patch {
        let text: String = bundle.iter().map(X509::pem).collect();
        let text = BASE64_STANDARD.encode(text);
        let mut operations =
            vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": self.resource_version})];
        for Webhook { client, name_at, name, .. } in self.webhooks.iter().filter(|one| !one.agrees(bundle)) {
            operations.push(json!({"op": "test", "path": name_at, "value": name}));
            operations.push(json!({"op": "add", "path": format!("{client}/caBundle"), "value": text}));
        }
        serde_json::from_value(Value::Array(operations)).expect("operations of RFC 6902")
    }
}

/// The last of the field managers that own a `caBundle`: times are in whole seconds.
fn last_manager(object: &Value) -> Option<String> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let others = entries.filter(|entry| entry["manager"] != PROGRAM);
    let owns = |entry: &Value| entry["fieldsV1"].to_string().contains("\"f:caBundle\"");
    let time = |entry: &Value| entry["time"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let last = others.max_by_key(|entry| (owns(entry), time(entry)))?;
    last["manager"].as_str().map(str::to_owned)
}

impl Webhook {
    fn read((index, webhook): (usize, &Value)) -> Self {
        Self {
            client: format!("/webhooks/{index}/clientConfig"),
            name_at: format!("/webhooks/{index}/name"),
            name: text(&webhook["name"]),
            authorities: authorities(&webhook["clientConfig"]),
        }
    }

    fn of_conversion(client: &Value) -> Self {
        let at = "/spec/conversion/webhook/clientConfig".to_owned();
        Self {
            name_at: format!("{at}/service/name"),
            client: at,
            name: text(&client["service"]["name"]),
            authorities: authorities(client),
        }
    }

    fn agrees(&self, bundle: &[X509]) -> bool {
        self.authorities.iter().all(|authority| bundle.contains(authority))
            && bundle.iter().all(|authority| self.authorities.contains(authority))
    }
}

fn authorities(client: &Value) -> Vec<X509> {
    let bundle = BASE64_STANDARD.decode(client["caBundle"].as_str().unwrap_or_default()).unwrap_or_default();
    read_certificates(&bundle).filter_map(Result::ok).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
