//! A webhook configuration, as far as it is looked after: the `caBundle` of its webhooks.

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use json_patch::Patch;
use serde_json::{Value, json};

use crate::content::read_certificates;
use crate::program::PROGRAM;
use crate::x509::X509;

/// By these annotations cert-manager's cainjector is told to fill in `caBundle`.
const CAINJECTOR: [&str; 3] = [
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
];

/// A configuration as it is now.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    webhooks: Vec<Webhook>,
    resource_version: String,
    /// The annotation that tells cert-manager to change it, too.
    pub cainjector: Option<&'static str>,
    /// Who, other than replicas, changed it last, by the name of their field manager.
    pub last_manager: Option<String>,
}

#[derive(Clone, Debug)]
struct Webhook {
    name: String,
    /// What of `caBundle` can be read; the rest is trusted by nobody.
    authorities: Vec<X509>,
}

impl Configuration {
    /// Reads a configuration, mutating or validating.
    pub fn read(object: &Value) -> Self {
        let webhooks = object["webhooks"].as_array().map_or(&[][..], Vec::as_slice);
        let annotations = &object["metadata"]["annotations"];
        let cainjector = CAINJECTOR.into_iter().find(|name| annotations.get(name).is_some());
        Self {
            webhooks: webhooks.iter().map(Webhook::read).collect(),
            resource_version: text(&object["metadata"]["resourceVersion"]),
            cainjector,
            last_manager: last_manager(object),
        }
    }

    /// Whether there is no webhook in it.
    pub fn is_empty(&self) -> bool {
        self.webhooks.is_empty()
    }

    /// The authorities that every one of its webhooks trusts.
    pub fn trusted(&self) -> Vec<X509> {
        let mut webhooks = self.webhooks.iter().map(|webhook| &webhook.authorities);
        let first = webhooks.next().cloned().unwrap_or_default();
        webhooks.fold(first, |mut common, next| {
            common.retain(|authority| next.contains(authority));
            common
        })
    }

    /// Whether each of its webhooks trusts these authorities and no others.
    pub fn agrees(&self, bundle: &[X509]) -> bool {
        self.webhooks.iter().all(|webhook| webhook.agrees(bundle))
    }

    /// What makes it agree: nothing but `caBundle` is touched. It does not apply to any other version of
    /// the object, so it never undoes what another replica, which knew more, has done in between.
    ///
    /// A JSON patch, since with server-side apply our ownership would hold webhooks that were removed from
    /// the configuration in it, as entries without anything but a `caBundle`.
    pub fn patch(&self, bundle: &[X509]) -> Patch {
        let text: String = bundle.iter().map(X509::pem).collect();
        let text = BASE64_STANDARD.encode(text);
        let mut operations =
            vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": self.resource_version})];
        for (index, webhook) in self.webhooks.iter().enumerate() {
            if !webhook.agrees(bundle) {
                let path = format!("/webhooks/{index}");
                operations.push(json!({"op": "test", "path": format!("{path}/name"), "value": webhook.name}));
                operations.push(
                    json!({"op": "add", "path": format!("{path}/clientConfig/caBundle"), "value": text}),
                );
            }
        }
        serde_json::from_value(Value::Array(operations)).expect("operations of RFC 6902")
    }
}

/// Of those who own a `caBundle`, if there are any: times are in whole seconds.
fn last_manager(object: &Value) -> Option<String> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let others = entries.filter(|entry| entry["manager"] != PROGRAM);
    let owns = |entry: &Value| entry["fieldsV1"].to_string().contains("\"f:caBundle\"");
    let time = |entry: &Value| entry["time"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let last = others.max_by_key(|entry| (owns(entry), time(entry)))?;
    last["manager"].as_str().map(str::to_owned)
}

impl Webhook {
    fn read(webhook: &Value) -> Self {
        let bundle = webhook["clientConfig"]["caBundle"].as_str().unwrap_or_default();
        let bundle = BASE64_STANDARD.decode(bundle).unwrap_or_default();
        Self {
            name: text(&webhook["name"]),
            authorities: read_certificates(&bundle).filter_map(Result::ok).collect(),
        }
    }

    fn agrees(&self, bundle: &[X509]) -> bool {
        self.authorities.iter().all(|authority| bundle.contains(authority))
            && bundle.iter().all(|authority| self.authorities.contains(authority))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
