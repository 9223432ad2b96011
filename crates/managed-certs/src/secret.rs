//! The Secret as a Kubernetes object: who manages it, and how it is written.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use crate::content::{Content, Data, REPLACED_UNTIL};
use crate::program::PROGRAM;

/// The type of Secrets with a certificate. The type of a Secret is immutable.
const TYPE: &str = "kubernetes.io/tls";

/// The label of objects that the program may overwrite if they are damaged.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// An existing Secret.
#[derive(Clone)]
pub struct Stored {
    /// The usable content.
    pub content: Content,
    /// A line about each unusable part, without any of a key.
    pub faults: Vec<String>,
    /// Why it must not be overwritten, and what to do.
    pub foreign: Option<String>,
    object: Value,
}

impl Stored {
    /// Reads a Secret.
    pub fn read(object: Value) -> Self {
        let data = data(&object["data"]);
        let replaced_until = object["metadata"]["annotations"][REPLACED_UNTIL].as_str();
        let (content, faults) = Content::read(&data, replaced_until);
        let foreign = foreign(&object, &data, &content);
        Self { content, faults, foreign, object }
    }

    /// Whether it is certainly older than another. Versions increase: since Kubernetes 1.35 by
    /// specification, and before that in practice.
    pub fn is_older_than(&self, other: &Self) -> bool {
        let number = |stored: &Self| version(&stored.object)?.parse::<u64>().ok();
        matches!((number(self), number(other)), (Some(own), Some(other)) if own < other)
    }

    /// The same Secret with this content: other data and metadata stay.
    pub fn with(&self, content: &Content) -> Value {
        let mut object = self.object.clone();
        let metadata = &mut object["metadata"];
        members(&mut metadata["labels"]).insert(MANAGED_BY.to_owned(), PROGRAM.into());
        let annotations = members(&mut metadata["annotations"]);
        match content.replaced_until {
            Some(until) => annotations.insert(REPLACED_UNTIL.to_owned(), until.to_string().into()),
            None => annotations.shift_remove(REPLACED_UNTIL),
        };
        members(&mut object["data"]).extend(encoded(content));
        object
    }
}

/// The resource version of an object.
fn version(object: &Value) -> Option<&str> {
    object["metadata"]["resourceVersion"].as_str()
}

/// The members of an object, created if missing.
fn members(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    object.as_object_mut().expect("it was made an object")
}

/// A new Secret.
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
            "labels": {MANAGED_BY: PROGRAM}, "annotations": annotations,
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

/// A Secret of another tool is never overwritten: that tool would overwrite it in turn, and
/// its content may be needed elsewhere. If it can be used unchanged, it is used.
fn foreign(object: &Value, data: &Data, content: &Content) -> Option<String> {
    let kind = object["type"].as_str().unwrap_or_default();
    if kind != TYPE {
        return Some(format!(
            "its type is {kind:?}, but has to be {TYPE:?}, and is immutable; delete the Secret or name another"
        ));
    }
    let is_ours = object["metadata"]["labels"][MANAGED_BY] == PROGRAM;
    let is_empty = data.values().all(Vec::is_empty);
    (!is_ours && !is_empty && !content.is_whole()).then(|| {
        format!(
            "it is not managed by {PROGRAM} (no label {MANAGED_BY}={PROGRAM}), and cannot be used unchanged; \
             delete it, set the label to have its content replaced, or name another"
        )
    })
}

#[cfg(test)]
mod tests;
