//! The Secret as an object of the cluster: whose it is, and how it is written.

use base64::{Engine, prelude::BASE64_STANDARD};
use kube::{ResourceExt, api::DynamicObject};
use serde_json::{Map, Value, json};

use super::content::{Content, Data, REPLACED_UNTIL};

/// The type of Secrets that hold a certificate. It can never be changed.
const TYPE: &str = "kubernetes.io/tls";

/// The label of what the program may remake when it is damaged.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const OURS: &str = "otel-webhook";

/// A Secret that is there.
#[derive(Clone)]
pub struct Stored {
    /// What can be used of it.
    pub content: Content,
    /// What cannot, a line each; never a word of a key.
    pub faults: Vec<String>,
    /// Why it is left alone, with what to do.
    pub foreign: Option<String>,
    object: DynamicObject,
}

impl Stored {
    /// Reads a Secret.
    ///
    /// An object without a type, not a typed Secret: the client logs what it cannot parse, and there are
    /// keys in it.
    pub fn read(object: DynamicObject) -> Self {
        let data = data(&object.data["data"]);
        let replaced_until = object.annotations().get(REPLACED_UNTIL).map(String::as_str);
        let (content, faults) = Content::read(&data, replaced_until);
        let foreign = foreign(&object, &data, &content);
        Self { content, faults, foreign, object }
    }

    /// Whether it is certainly older than another. Versions count up: since Kubernetes 1.35 by contract, and
    /// before that in fact.
    pub fn is_older_than(&self, other: &Self) -> bool {
        let version = |stored: &Self| stored.object.resource_version()?.parse::<u64>().ok();
        matches!((version(self), version(other)), (Some(own), Some(other)) if own < other)
    }

    /// The same Secret with this content: what others put into it stays.
    pub fn with(&self, content: &Content) -> DynamicObject {
        let mut object = self.object.clone();
        object.labels_mut().insert(MANAGED_BY.to_owned(), OURS.to_owned());
        let annotations = object.annotations_mut();
        match content.replaced_until {
            Some(until) => annotations.insert(REPLACED_UNTIL.to_owned(), until.to_string()),
            None => annotations.remove(REPLACED_UNTIL),
        };
        if !object.data["data"].is_object() {
            object.data["data"] = json!({});
        }
        for (key, value) in encoded(content) {
            object.data["data"][key] = value;
        }
        object
    }
}

/// A Secret that is not there yet.
pub fn new(namespace: &str, name: &str, content: &Content) -> Value {
    let annotations: Map<String, Value> = content
        .replaced_until
        .iter()
        .map(|until| (REPLACED_UNTIL.to_owned(), json!(until.to_string())))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": TYPE,
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": {MANAGED_BY: OURS}, "annotations": annotations,
        },
        "data": encoded(content),
    })
}

fn encoded(content: &Content) -> Map<String, Value> {
    let encode = |(key, value): (String, Vec<u8>)| (key, BASE64_STANDARD.encode(value).into());
    content.data().into_iter().map(encode).collect()
}

fn data(encoded: &Value) -> Data {
    let decode = |(key, value): (&String, &Value)| {
        Some((key.clone(), BASE64_STANDARD.decode(value.as_str()?).unwrap_or_default()))
    };
    encoded.as_object().into_iter().flatten().filter_map(decode).collect()
}

/// A Secret that somebody else made is never overwritten: whoever renews it would overwrite it in turn, and
/// what was in it may be needed elsewhere. One that can be used as it is, is used.
fn foreign(object: &DynamicObject, data: &Data, content: &Content) -> Option<String> {
    let kind = object.data["type"].as_str().unwrap_or_default();
    if kind != TYPE {
        return Some(format!(
            "it is of type {kind:?}, which cannot be changed, and has to be {TYPE:?}; delete it or name another"
        ));
    }
    let is_ours = object.labels().get(MANAGED_BY).is_some_and(|manager| manager == OURS);
    let is_empty = data.values().all(Vec::is_empty);
    (!is_ours && !is_empty && !content.is_whole()).then(|| {
        format!(
            "somebody else made it, as it has no label {MANAGED_BY}={OURS}, and it cannot be used as it is; \
             delete it, set the label to have its content replaced, or name another"
        )
    })
}

#[cfg(test)]
mod tests;
